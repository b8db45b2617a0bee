#include "transport/imported_arrays.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"
#include "transport/client_side.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/gpu_plan.h"

namespace tandem {
namespace {

// Whether the engine has exported the memory itself. Otherwise CUDA IPC does:
// the region's checks allow no other mode.
bool IsEnginesOwn(const LrbcHeader& plan) {
  return plan.gpu_obs_mode == static_cast<uint8_t>(GpuMode::kVulkanExternal);
}

absl::Status CheckImportable(const AttachedRegion& region,
                             absl::string_view name) {
  const LrbcHeader& plan = region.plan();
  if (!HasGpuArrays(plan)) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", name,
                                  "': expected an engine with arrays on a GPU, "
                                  "found one without; use obs, or "
                                  "tandem.torch, which copies"));
  }
  // relaxed: a private copy.
  if (!IsEnginesOwn(plan) && plan.server_pid.load(std::memory_order_relaxed) ==
                                 static_cast<uint32_t>(getpid())) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", name,
                                  "': expected an engine in another process, "
                                  "found this one; CUDA IPC opens no memory "
                                  "of its own process"));
  }
  if (!IsCurrentUser(region.owner())) {
    return MakeError(
        ErrorCode::kAccessDenied,
        absl::StrCat("region '", name,
                     "': expected an engine of this user (uid ", geteuid(),
                     "), found ", DescribeUser(region.owner()),
                     "; memory of a GPU needs the same user. Use obs, "
                     "which a group may share"));
  }
  return absl::OkStatus();
}

// The driver gives several reasons for a handle whose exporter has ended.
absl::Status OpenError(const CudaDriver& driver, CudaResult result,
                       absl::string_view call, absl::string_view name) {
  if (result != kCudaInvalidValue && result != kCudaInvalidHandle &&
      result != kCudaMapFailed) {
    return driver.Check(result, call);
  }
  return MakeError(
      ErrorCode::kGpuStaleHandle,
      absl::StrCat("region '", name,
                   "': expected the engine's GPU memory, found it gone: ", call,
                   ": ", driver.NameOf(result),
                   "; start the engine again and call reconnect"));
}

// What forbids a process the descriptors of another one of the same user, and
// the next step.
std::string ForbiddenBy() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope == 0) {
    return "the engine's protection (PR_SET_DUMPABLE, capabilities), or a "
           "container's seccomp profile; run the container with "
           "--cap-add=SYS_PTRACE";
  }
  return absl::StrCat(
      "Yama (kernel.yama.ptrace_scope is ", scope, "); ",
      scope > 1 ? "set it to 1 or 0"
                : "start the engine from this process, as tandem.launch_engine "
                  "does, or let the engine call prctl(PR_SET_PTRACER, "
                  "PR_SET_PTRACER_ANY), or set it to 0");
}

// Whether a process has the region in its memory: in another PID namespace the
// engine's id may be that of a stranger.
bool Maps(uint32_t pid, absl::string_view name) {
  const auto region = SharedRegion::Open(name, SharedRegion::Access::kRead);
  if (!region.ok()) return false;
  // Behind the address, the permissions, the offset and the device.
  const std::string inode = absl::StrCat(" ", region->id().inode, " ");
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, inode)) return true;
  }
  return false;
}

// Duplicates the descriptor `number` of the engine's process into this one.
absl::StatusOr<UniqueFd> TakeDescriptor(const AttachedRegion& region,
                                        uint32_t number,
                                        absl::string_view name) {
  // relaxed: a private copy.
  const uint32_t pid = region.plan().server_pid.load(std::memory_order_relaxed);
  const UniqueFd engine(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  UniqueFd taken;
  int error = errno;
  if (engine.valid()) {
    taken = UniqueFd(
        static_cast<int>(syscall(SYS_pidfd_getfd, engine.get(), number, 0)));
    error = errno;
    if (taken.valid() && !Maps(pid, name)) error = ESRCH;
  }
  // An engine that lives now had this id all the time, in its namespace.
  const bool alive = region.EngineAlive();
  if (alive && taken.valid() && error != ESRCH) return taken;
  ErrorCode code = ErrorCode::kUnsupported;
  std::string found = "a system without pidfd_getfd; use Linux 5.6 or newer";
  if (!alive || error == EBADF) {
    code = ErrorCode::kGpuStaleHandle;
    found = absl::StrCat(alive ? "that it is closed" : "that it has ended",
                         "; start the engine again and call reconnect");
  } else if (error == EPERM) {
    code = ErrorCode::kAccessDenied;
    found = absl::StrCat("that this is forbidden by ", ForbiddenBy());
  } else if (error == ESRCH) {
    found =
        "no such process here with this region; start both in one PID "
        "namespace";
  } else if (error != ENOSYS) {
    return MakeSystemError("pidfd_getfd", name, error);
  }
  return MakeError(
      code,
      absl::StrCat("region '", name, "': expected the descriptor ", number,
                   " of the engine's process ", pid, ", found ", found));
}

}  // namespace

absl::StatusOr<std::shared_ptr<ImportedArrays>> ImportedArrays::Open(
    const ClientSide& client) {
  const AttachedRegion& region = client.region();
  const std::string& name = client.name();
  TANDEM_RETURN_IF_ERROR(CheckImportable(region, name));
  const LrbcHeader& plan = region.plan();
  TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
  CudaUuid uuid;
  std::memcpy(uuid.bytes, plan.gpu_device_uuid, sizeof(uuid.bytes));
  TANDEM_ASSIGN_OR_RETURN(auto context, PrimaryContext::Of(*driver, uuid));
  TANDEM_RETURN_IF_ERROR(context->CheckCaller());
  // Its destructor closes what was opened, and releases the context, which must
  // not be current then.
  std::shared_ptr<ImportedArrays> opened(new ImportedArrays(
      std::move(context), region.gpu_arrays(), plan.num_envs));
  const CurrentContext current(*opened->context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = opened->context_->cuda();
  if (IsEnginesOwn(plan)) {
    TANDEM_RETURN_IF_ERROR(opened->ImportMemory(region, name));
    return opened;
  }

  CudaMemoryHandle memory;
  CudaEventHandle event;
  std::memcpy(memory.bytes, plan.gpu_obs_handle, sizeof(memory.bytes));
  std::memcpy(event.bytes, plan.gpu_event_handle, sizeof(event.bytes));
  CudaResult result =
      cuda.IpcOpenMemory(&opened->base_, memory, kCudaIpcLazyPeerAccess);
  if (result != kCudaSuccess) {
    return OpenError(*driver, result, "cuIpcOpenMemHandle", name);
  }
  result = cuda.IpcOpenEvent(&opened->event_, event);
  if (result != kCudaSuccess) {
    return OpenError(*driver, result, "cuIpcOpenEventHandle", name);
  }
  return opened;
}

absl::Status ImportedArrays::ImportMemory(const AttachedRegion& region,
                                          absl::string_view name) {
  const LrbcHeader& plan = region.plan();
  GpuFileHandle handle;
  std::memcpy(&handle, plan.gpu_obs_handle, sizeof(handle));
  TANDEM_ASSIGN_OR_RETURN(UniqueFd fd, TakeDescriptor(region, handle.fd, name));
  CudaMemoryDesc memory = {};
  memory.type = kCudaOpaqueFd;
  memory.fd = fd.get();
  memory.bytes = plan.gpu_alloc_size;
  memory.flags = (handle.flags & kGpuDedicated) != 0 ? kCudaDedicated : 0;
  absl::string_view call = "cuImportExternalMemory";
  CudaResult result = context_->cuda().ImportMemory(&external_, &memory);
  if (result == kCudaSuccess) {
    (void)fd.release();  // the driver owns it
    CudaBufferDesc all = {};
    all.bytes = plan.gpu_alloc_size;
    call = "cuExternalMemoryGetMappedBuffer";
    result = context_->cuda().GetMappedBuffer(&base_, external_, &all);
  }
  if (result == kCudaSuccess) return absl::OkStatus();
  return MakeError(
      ErrorCode::kGpuFailed,
      absl::StrCat("region '", name, "': ", call, " of ", memory.bytes,
                   " bytes: expected success, found ",
                   context_->driver().NameOf(result),
                   "; check the memory's fd, bytes and `dedicated`"));
}

ImportedArrays::~ImportedArrays() {
  if (CudaBelongsToParent()) return;
  const CurrentContext current(*context_);
  if (!current.status().ok()) return;
  if (event_ != nullptr) (void)context_->cuda().EventDestroy(event_);
  if (external_ == nullptr) {
    if (base_ != 0) (void)context_->cuda().IpcCloseMemory(base_);
    return;
  }
  if (base_ != 0) (void)context_->cuda().MemFree(base_);
  (void)context_->cuda().DestroyMemory(external_);
}

absl::Status ImportedArrays::WaitOn(CudaStream stream) {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  if (event_ != nullptr) {
    TANDEM_RETURN_IF_ERROR(context_->driver().Check(
        context_->cuda().StreamWaitEvent(stream, event_, 0),
        "cuStreamWaitEvent"));
  }
  if (std::ranges::find(readers_, stream) == readers_.end()) {
    readers_.push_back(stream);
  }
  return absl::OkStatus();
}

absl::Status ImportedArrays::AwaitReaders() {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  absl::Status status;
  for (const CudaStream stream : std::exchange(readers_, {})) {
    status.Update(context_->driver().Check(
        context_->cuda().StreamSynchronize(stream), "cuStreamSynchronize"));
  }
  return status;
}

int ImportedArrays::device() const { return context_->ordinal(); }

}  // namespace tandem

#include "transport/imported_arrays.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "base/os/foreign_descriptor.h"
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
                     "': expected an engine of this user, found one of ",
                     DescribeUser(region.owner()),
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

// Duplicates the descriptor `number` of the engine's process into this one.
absl::StatusOr<UniqueFd> TakeFromEngine(const AttachedRegion& region,
                                        uint32_t number,
                                        absl::string_view name) {
  // relaxed: a private copy.
  const uint32_t pid = region.plan().server_pid.load(std::memory_order_relaxed);
  absl::StatusOr<UniqueFd> taken = TakeDescriptor(
      pid, number, SharedRegion::At(name).value_or(SharedRegion::Id{}));
  // An engine that lives now had this id all the time, in its namespace.
  const bool alive = region.EngineAlive();
  if (alive && taken.ok()) return taken;
  ErrorCode code = CodeOf(taken.status());
  std::string found(alive ? taken.status().message() : "that it has ended");
  if (!alive || code == ErrorCode::kNotReady) {
    code = ErrorCode::kGpuStaleHandle;
    found += "; start the engine again and call reconnect";
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
  TANDEM_ASSIGN_OR_RETURN(UniqueFd fd, TakeFromEngine(region, handle.fd, name));
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

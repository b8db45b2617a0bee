#include "transport/imported_arrays.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/os/current_user.h"
#include "transport/client_side.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/gpu_plan.h"

namespace tandem {
namespace {

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
  if (plan.gpu_obs_mode != static_cast<uint8_t>(GpuMode::kCudaIpc)) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", name,
                                  "': expected gpu_obs_mode 1 (CUDA IPC), "
                                  "found ",
                                  uint32_t{plan.gpu_obs_mode},
                                  "; this version has no other mode"));
  }
  // relaxed: a private copy.
  if (plan.server_pid.load(std::memory_order_relaxed) ==
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
                     "; CUDA IPC needs the same user. Use obs, "
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
  const CurrentContext current(*context);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = context->cuda();

  CudaMemoryHandle memory;
  CudaEventHandle event;
  std::memcpy(memory.bytes, plan.gpu_obs_handle, sizeof(memory.bytes));
  std::memcpy(event.bytes, plan.gpu_event_handle, sizeof(event.bytes));
  CudaPointer base = 0;
  CudaResult result = cuda.IpcOpenMemory(&base, memory, kCudaIpcLazyPeerAccess);
  if (result != kCudaSuccess) {
    return OpenError(*driver, result, "cuIpcOpenMemHandle", name);
  }
  // From here on the destructor closes what was opened.
  std::shared_ptr<ImportedArrays> opened(new ImportedArrays(
      std::move(context), region.gpu_arrays(), plan.num_envs, base));
  result = cuda.IpcOpenEvent(&opened->event_, event);
  if (result != kCudaSuccess) {
    return OpenError(*driver, result, "cuIpcOpenEventHandle", name);
  }
  return opened;
}

ImportedArrays::~ImportedArrays() {
  if (CudaBelongsToParent()) return;
  const CurrentContext current(*context_);
  if (!current.status().ok()) return;
  if (event_ != nullptr) (void)context_->cuda().EventDestroy(event_);
  (void)context_->cuda().IpcCloseMemory(base_);
}

absl::Status ImportedArrays::WaitOn(CudaStream stream) {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  TANDEM_RETURN_IF_ERROR(context_->driver().Check(
      context_->cuda().StreamWaitEvent(stream, event_, 0),
      "cuStreamWaitEvent"));
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

#include "transport/gpu/exported_arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/base/error.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<ExportedArrays>> ExportedArrays::Make(
    int ordinal, std::vector<FieldRecord> arrays, uint32_t num_envs) {
  TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
  TANDEM_ASSIGN_OR_RETURN(auto context, PrimaryContext::Of(*driver, ordinal));
  TANDEM_RETURN_IF_ERROR(context->CheckCaller());
  const CurrentContext current(*context);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = context->cuda();

  const uint64_t bytes = GpuBytes(arrays, num_envs);
  CudaPointer base = 0;
  TANDEM_RETURN_IF_ERROR(
      driver->Check(cuda.MemAlloc(&base, bytes), "cuMemAlloc"));
  GpuSpec spec = {.mode = GpuMode::kCudaIpc,
                  .device_id = static_cast<uint32_t>(ordinal),
                  .alloc_bytes = bytes,
                  .arrays = std::move(arrays)};
  std::memcpy(spec.device_uuid.data(), context->uuid().bytes,
              spec.device_uuid.size());
  // From here on the destructor frees what was made.
  std::unique_ptr<ExportedArrays> made(
      new ExportedArrays(std::move(context), std::move(spec), base));
  CudaMemoryHandle memory;
  CudaEventHandle event;
  TANDEM_RETURN_IF_ERROR(
      driver->Check(cuda.MemsetD8(base, 0, bytes), "cuMemsetD8"));
  TANDEM_RETURN_IF_ERROR(
      driver->Check(cuda.IpcGetMemory(&memory, base), "cuIpcGetMemHandle"));
  TANDEM_RETURN_IF_ERROR(driver->Check(
      cuda.EventCreate(&made->event_,
                       kCudaEventInterprocess | kCudaEventDisableTiming),
      "cuEventCreate"));
  TANDEM_RETURN_IF_ERROR(driver->Check(cuda.IpcGetEvent(&event, made->event_),
                                       "cuIpcGetEventHandle"));
  std::memcpy(made->spec_.memory_handle.data(), memory.bytes,
              sizeof(memory.bytes));
  std::memcpy(made->spec_.event_handle.data(), event.bytes,
              sizeof(event.bytes));
  const std::vector<FieldRecord>& all = made->spec_.arrays;
  for (const FieldRecord& obs : all) {
    if (obs.role != FieldRole::kObs) continue;
    const auto final_obs =
        std::ranges::find_if(all, [&](const FieldRecord& other) {
          return other.role == FieldRole::kFinalObs &&
                 PathOf(other) == PathOf(obs);
        });
    if (final_obs == all.end()) continue;
    made->pairs_.push_back({.from = obs.offset,
                            .to = final_obs->offset,
                            .row_bytes = FieldRowBytes(obs)});
  }
  return made;
}

ExportedArrays::~ExportedArrays() {
  if (CudaBelongsToParent()) return;
  const CurrentContext current(*context_);
  if (!current.status().ok()) return;
  if (event_ != nullptr) (void)context_->cuda().EventDestroy(event_);
  (void)context_->cuda().MemFree(base_);
}

void ExportedArrays::KeepFinalRows(std::span<const uint32_t> envs) {
  const CurrentContext current(*context_);
  kept_.Update(current.status());
  for (const Pair& pair : pairs_) {
    for (const uint32_t env : envs) {
      if (!kept_.ok()) return;
      const uint64_t row = env * pair.row_bytes;
      kept_ = context_->driver().Check(
          context_->cuda().MemcpyOnDevice(base_ + pair.to + row,
                                          base_ + pair.from + row,
                                          pair.row_bytes, stream_),
          "cuMemcpyDtoDAsync of a final observation");
    }
  }
}

absl::Status ExportedArrays::Record() {
  const CurrentContext current(*context_);
  absl::Status status = std::exchange(kept_, absl::OkStatus());
  status.Update(current.status());
  if (!status.ok()) return status;
  return context_->driver().Check(context_->cuda().EventRecord(event_, stream_),
                                  "cuEventRecord");
}

}  // namespace tandem

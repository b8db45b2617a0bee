#include "transport/exported_arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/error.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"
#include "transport/memory/gpu_plan.h"

namespace tandem {
namespace {

// CUDA shares memory in blocks of this size: an allocation of whole blocks
// shares nothing else of the process.
constexpr uint64_t kSharedBlock = 2 << 20;

// Calls with the first environment and the number of each run of neighbours,
// such as all environments, whose episodes end at the same step.
absl::Status ForEachRun(
    std::span<const uint32_t> envs,
    absl::FunctionRef<absl::Status(uint64_t first, uint64_t count)> call) {
  for (size_t at = 0; at < envs.size();) {
    size_t end = at + 1;
    while (end < envs.size() && envs[end] == envs[end - 1] + 1) ++end;
    TANDEM_RETURN_IF_ERROR(call(envs[at], end - at));
    at = end;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<ExportedArrays>> ExportedArrays::Make(
    int ordinal, std::vector<FieldRecord> arrays, uint32_t num_envs) {
  TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
  TANDEM_ASSIGN_OR_RETURN(auto context, PrimaryContext::Of(*driver, ordinal));
  TANDEM_RETURN_IF_ERROR(context->CheckCaller());
  const CurrentContext current(*context);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = context->cuda();

  const uint64_t bytes = (GpuBytes(arrays, num_envs) + kSharedBlock - 1) /
                         kSharedBlock * kSharedBlock;
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
  std::shared_ptr<ExportedArrays> made(
      new ExportedArrays(std::move(context), std::move(spec), base));
  CudaMemoryHandle memory;
  CudaEventHandle event;
  TANDEM_RETURN_IF_ERROR(
      driver->Check(cuda.MemsetD8(base, 0, bytes, nullptr), "cuMemsetD8Async"));
  TANDEM_RETURN_IF_ERROR(
      driver->Check(cuda.StreamSynchronize(nullptr), "cuStreamSynchronize"));
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
  for (const FieldRecord& array : all) {
    if (array.role == FieldRole::kReward) made->rewards_ = made->At(array);
    if (array.role != FieldRole::kObs) continue;
    const auto final_obs =
        std::ranges::find_if(all, [&](const FieldRecord& other) {
          return other.role == FieldRole::kFinalObs &&
                 PathOf(other) == PathOf(array);
        });
    if (final_obs == all.end()) continue;
    made->pairs_.push_back({.from = array.offset,
                            .to = final_obs->offset,
                            .row_bytes = FieldRowBytes(array)});
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

absl::Status ExportedArrays::KeepFinalRows(std::span<const uint32_t> envs) {
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  for (const Pair& pair : pairs_) {
    TANDEM_RETURN_IF_ERROR(
        ForEachRun(envs, [&](uint64_t first, uint64_t count) {
          const uint64_t at = first * pair.row_bytes;
          return context_->driver().Check(
              context_->cuda().MemcpyOnDevice(base_ + pair.to + at,
                                              base_ + pair.from + at,
                                              count * pair.row_bytes, stream_),
              "cuMemcpyDtoDAsync of a final observation");
        }));
  }
  return absl::OkStatus();
}

absl::Status ExportedArrays::ZeroRewards(std::span<const uint32_t> envs) {
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  return ForEachRun(envs, [&](uint64_t first, uint64_t count) {
    return context_->driver().Check(
        context_->cuda().MemsetD8(rewards_ + first * sizeof(float), 0,
                                  count * sizeof(float), stream_),
        "cuMemsetD8Async of rewards");
  });
}

absl::Status ExportedArrays::Record() {
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  return context_->driver().Check(context_->cuda().EventRecord(event_, stream_),
                                  "cuEventRecord");
}

int ExportedArrays::device() const { return context_->ordinal(); }

}  // namespace tandem

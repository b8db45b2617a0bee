// ExportedArrays: memory of a GPU that an engine allocates, and that its client
// opens in another process (CUDA IPC).
//
// Data flow: the region's sizes -> Make -> spec(), for the region's header and
// table -> the engine writes on the GPU -> Record -> frame_seq -> the client's
// stream waits for the event.
// Ownership: shared by the engine's host and the engine's arrays, so that an
// engine that keeps arrays does not lose their memory. The host's thread calls
// it. The driver frees the memory when the process ends.
//
//   TANDEM_ASSIGN_OR_RETURN(auto gpu, ExportedArrays::Make(
//       0, PlanGpuArrays(num_envs, obs_size, {}, 0, 0), num_envs));
//   spec.gpu = gpu->spec();
//   ... make the region; in each exchange: write to gpu->At(record) ...
//   TANDEM_RETURN_IF_ERROR(gpu->Record());  // then publish

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/layout/field.h"
#include "transport/cuda.h"
#include "transport/region_spec.h"

namespace tandem {

class PrimaryContext;

// Legal call order: Make, then any call.
class ExportedArrays {
 public:
  // Allocates zeroed memory for `arrays` on the device with this number.
  // Errors: those of ReadCudaReport; kGpuOtherDevice: no such device;
  // kGpuFailed.
  static absl::StatusOr<std::shared_ptr<ExportedArrays>> Make(
      int ordinal, std::vector<FieldRecord> arrays, uint32_t num_envs);
  ExportedArrays(const ExportedArrays&) = delete;
  ExportedArrays& operator=(const ExportedArrays&) = delete;
  // Frees the memory, except in a forked child.
  ~ExportedArrays();

  // With mode, device, handles, size and arrays; the caller sets fills_cpu.
  const GpuSpec& spec() const { return spec_; }
  int device() const;  // its number
  CudaPointer At(const FieldRecord& array) const {
    return base_ + array.offset;
  }

  // The stream on which the engine writes; nullptr: the context's legacy
  // stream, which waits for all blocking streams.
  void WriteOn(CudaStream stream) { stream_ = stream; }
  // Copies the rows of these environments from each observation to its final
  // observation, on that stream. kGpuFailed.
  absl::Status KeepFinalRows(std::span<const uint32_t> envs);
  // Sets the rewards of these environments to 0, on that stream. kGpuFailed.
  absl::Status ZeroRewards(std::span<const uint32_t> envs);
  // Records the event on that stream: what was written is complete when the
  // event is. Call it before the exchange is published. kGpuFailed.
  absl::Status Record();

 private:
  // An observation and its final observation.
  struct Pair {
    uint64_t from;
    uint64_t to;
    uint64_t row_bytes;
  };

  ExportedArrays(std::shared_ptr<const PrimaryContext> context, GpuSpec spec,
                 CudaPointer base)
      : context_(std::move(context)), spec_(std::move(spec)), base_(base) {}

  const std::shared_ptr<const PrimaryContext> context_;
  GpuSpec spec_;
  const CudaPointer base_;
  CudaEvent event_ = nullptr;
  CudaStream stream_ = nullptr;
  std::vector<Pair> pairs_;
  CudaPointer rewards_ = 0;
};

}  // namespace tandem

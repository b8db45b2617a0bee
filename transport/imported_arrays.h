// ImportedArrays: an engine's arrays on a GPU, opened by its client: by CUDA
// IPC, or in memory that the engine has exported itself, such as with Vulkan.
//
// Data flow: a region's checked header and table -> Open -> addresses in this
// process -> a consumer's stream waits for the engine's event -> the consumer's
// kernels read.
// Ownership: shared. A tensor of a consumer keeps a reference, so the memory
// stays open after the client's close; its contents are then undefined. One
// thread at a time may call.
//
//   TANDEM_ASSIGN_OR_RETURN(auto arrays, ImportedArrays::Open(client));
//   TANDEM_RETURN_IF_ERROR(arrays->WaitOn(stream));
//   ... kernels on `stream` read arrays->At(record) ...
//   TANDEM_RETURN_IF_ERROR(arrays->AwaitReaders());  // before the next send

#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/cuda.h"

namespace tandem {

class AttachedRegion;
class ClientSide;
class PrimaryContext;

class ImportedArrays {
 public:
  // Errors:
  //  - kUnsupported: the engine exports nothing; or, with CUDA IPC, is this
  //    process; or its descriptor cannot be taken on this system.
  //  - kAccessDenied: the engine belongs to another user; or the system forbids
  //    to take its descriptor: the text says which part, and what to do.
  //  - kGpuOtherDevice, kGpuOtherContext, kGpuStaleHandle, kGpuFailed.
  //  - those of ReadCudaReport.
  static absl::StatusOr<std::shared_ptr<ImportedArrays>> Open(
      const ClientSide& client);
  ImportedArrays(const ImportedArrays&) = delete;
  ImportedArrays& operator=(const ImportedArrays&) = delete;
  // Closes the memory, except in a forked child.
  ~ImportedArrays();

  const std::vector<FieldRecord>& arrays() const { return arrays_; }
  uint32_t num_envs() const { return num_envs_; }
  CudaPointer At(const FieldRecord& array) const {
    return base_ + array.offset;
  }
  int device() const;  // its number

  // Makes later work on `stream` wait for the results of the last exchange, and
  // remembers the stream for AwaitReaders. Without an event the engine has
  // waited itself. Does not block. kGpuOtherContext, kGpuFailed, kForkedChild.
  absl::Status WaitOn(CudaStream stream);
  bool HasReaders() const { return !readers_.empty(); }
  // Blocks until the work on all remembered streams is done: then the engine
  // may overwrite the arrays. Forgets the streams, also after an error, of
  // which it returns the first. kGpuOtherContext and kForkedChild change
  // nothing; kGpuFailed.
  absl::Status AwaitReaders();

 private:
  ImportedArrays(std::shared_ptr<const PrimaryContext> context,
                 std::vector<FieldRecord> arrays, uint32_t num_envs)
      : context_(std::move(context)),
        arrays_(std::move(arrays)),
        num_envs_(num_envs) {}
  absl::Status ImportMemory(const AttachedRegion& region,
                            absl::string_view name);

  const std::shared_ptr<const PrimaryContext> context_;
  const std::vector<FieldRecord> arrays_;
  const uint32_t num_envs_;
  CudaPointer base_ = 0;
  CudaEvent event_ = nullptr;              // nullptr: none
  CudaExternalMemory external_ = nullptr;  // nullptr: CUDA IPC
  std::vector<CudaStream> readers_;
};

}  // namespace tandem

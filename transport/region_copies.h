// RegionCopies: copies arrays of a region to a GPU while the client's process
// does other work.
//
// Data flow: the region, registered as pinned memory once -> an asynchronous
// copy into one of two buffers of the device -> a consumer's stream waits for
// the copy.
// Ownership: shared by its maker and the consumers' tensors. Any thread may
// call, but not with a lock that work on a consumer's stream takes. With
// `overlaps`, arrays go through two pinned buffers of this process first, so
// that the copy may run during the next step; without, a send must wait until
// the copy has read the region (AwaitRead).
//
//   TANDEM_ASSIGN_OR_RETURN(auto copies, RegionCopies::Make(
//       0, client.mapping(), {{arrays.obs.data(), arrays.obs.size_bytes()}},
//       /*overlaps=*/false));
//   TANDEM_ASSIGN_OR_RETURN(const uint64_t copy, copies->Begin());
//   TANDEM_RETURN_IF_ERROR(copies->WaitOn(copy, stream));
//   ... kernels on `stream` read copies->At(copy, 0) ...
//   TANDEM_RETURN_IF_ERROR(copies->AwaitRead());  // before the next send

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "transport/cuda.h"
#include "transport/region.h"

namespace tandem {

class PrimaryContext;

class RegionCopies {
 public:
  // An array inside the mapping.
  struct Source {
    const void* address;
    size_t bytes;
  };

  // Errors: those of ReadCudaReport; kGpuOtherDevice: no such device;
  // kGpuFailed: no memory on the device, or the region cannot be pinned (ulimit
  // -l).
  static absl::StatusOr<std::shared_ptr<RegionCopies>> Make(
      int ordinal, std::shared_ptr<const RegionMapping> mapping,
      const std::vector<Source>& sources, bool overlaps);
  RegionCopies(const RegionCopies&) = delete;
  RegionCopies& operator=(const RegionCopies&) = delete;
  // Waits for the copies; frees all, except in a forked child.
  ~RegionCopies();

  // Begins to copy all sources. Returns the copy's number; its buffer is
  // overwritten by the second copy after it, which waits for the work of its
  // readers on the device. Blocks only with `overlaps`, if that buffer's last
  // copy is not complete. After an error no copy is in progress, and the
  // buffer's last copy has no values any more.
  absl::StatusOr<uint64_t> Begin();
  // Makes later work on `stream` wait for this copy; nullopt: only checks that
  // its buffer still has its values. The stream must exist until it has not.
  // kInvalidArgument: a later copy has overwritten them. kGpuOtherContext,
  // kGpuFailed, kForkedChild.
  absl::Status WaitOn(uint64_t copy, std::optional<CudaStream> stream);
  // Blocks until the last copy has read the region. Returns at once with
  // `overlaps`.
  absl::Status AwaitRead();
  // Copies from the device into the region, after the work on `stream`, and
  // blocks until it is done.
  absl::Status CopyBack(void* to, CudaPointer from, size_t bytes,
                        CudaStream stream);

  CudaPointer At(uint64_t copy, size_t source) const {
    return buffers_[copy % kBuffers].device + places_[source];
  }
  bool overlaps() const { return overlaps_; }

 private:
  static constexpr size_t kBuffers = 2;
  // Neighbouring sources, which one call copies.
  struct Range {
    const std::byte* from;
    size_t bytes;
    uint64_t place;  // in a buffer
  };
  struct Buffer {
    CudaPointer device = 0;
    std::byte* host = nullptr;  // pinned; nullptr without `overlaps`
    bool pinned = false;
    CudaEvent copied = nullptr;
    std::vector<CudaStream> readers = {};
  };

  RegionCopies(std::shared_ptr<const PrimaryContext> context,
               std::shared_ptr<const RegionMapping> mapping, bool overlaps)
      : context_(std::move(context)),
        mapping_(std::move(mapping)),
        overlaps_(overlaps) {}
  void Plan(const std::vector<Source>& sources);
  absl::Status Allocate();
  absl::Status Enqueue(const Buffer& buffer);
  absl::Status Check(CudaResult result, const char* call) const;

  const std::shared_ptr<const PrimaryContext> context_;
  const std::shared_ptr<const RegionMapping> mapping_;
  const bool overlaps_;
  // Keeps the mapping pinned, together with other copies of it.
  std::shared_ptr<const void> pin_;
  std::vector<Range> ranges_;
  std::vector<uint64_t> places_;  // of each source, in a buffer
  size_t bytes_ = 0;              // of a buffer
  std::array<Buffer, kBuffers> buffers_;
  CudaStream stream_ = nullptr;
  CudaEvent order_ = nullptr;  // orders readers before a copy
  // Begin and AwaitRead hold it while they wait for the device. Guards the
  // buffers' readers, too.
  Mutex mutex_;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // copies
};

}  // namespace tandem

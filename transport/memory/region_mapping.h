// RegionMapping: a region in this process's address space.
//
// Data flow: descriptor -> mmap -> typed addresses.
// Ownership: shared; whoever hands out a view keeps a reference, so that the
// memory outlives `close`. The pages are shared with the peer: what is read
// from them may change at any time and is never trusted.
//
//   auto mapping = RegionMapping::Map(fd, bytes);
//   float* obs = (*mapping)->At<float>((*mapping)->header()->obs_offset);

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_MAPPING_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "schema/layout/lrbc.h"

namespace tandem {

// Unmaps when the last reference goes. Safe to share between threads.
class RegionMapping {
 public:
  // Maps `bytes` of `fd` for reading and writing, asks for huge pages (best
  // effort), and touches every page, so that no step meets a page fault.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> Map(
      int fd, uint64_t bytes);

  RegionMapping(const RegionMapping&) = delete;
  RegionMapping& operator=(const RegionMapping&) = delete;
  ~RegionMapping();

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  LrbcHeader* header() const { return reinterpret_cast<LrbcHeader*>(base_); }

  // The address at an offset that CheckHeader or PlanRegion has passed.
  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  // Bytes of it that huge pages back just now. Reads /proc/self/smaps.
  uint64_t HugePageBytes() const;

 private:
  RegionMapping(std::byte* base, uint64_t bytes) : base_(base), bytes_(bytes) {}

  std::byte* base_;
  uint64_t bytes_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_MAPPING_H_

// RegionMapping: a region in this process's address space.
//
// Data flow: descriptor -> mmap -> typed addresses.
// Ownership: shared; an object that hands out a view keeps a reference, so that
// the memory outlives `close`. One process maps a region once, however many of
// its objects use it (unless two threads map at the same instant): views stay
// current across a reconnect to the same engine, and ThreadSanitizer sees both
// sides of a test at the same addresses. The pages are shared with the peer:
// what is read from them may change at any time and is never trusted.
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
  // effort), and touches every page, so that no step meets a page fault. If
  // this process has the file mapped already, that mapping. Thread-safe.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> Map(
      int fd, uint64_t bytes);

  // A new read-only mapping for an observer. Reads no page: its first read of a
  // page may block.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> MapReadOnly(
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
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> MapAnew(
      int fd, uint64_t bytes);

  std::byte* base_;
  uint64_t bytes_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_MAPPING_H_

// RegionMapping: a region in this process's address space.
//
// Data flow: descriptor -> mmap -> typed addresses.
// Ownership: shared. An object that returns a view keeps a reference, so the
// memory outlives `close`. All objects of a process share one mapping of a
// region (unless two threads map at the same instant). So views stay current
// across a reconnect to the same engine, and ThreadSanitizer sees both sides of
// a test at the same addresses. The peer shares the pages and may change them
// at any time: values read from them are untrusted.
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

// The last reference unmaps. Threads may share a RegionMapping.
class RegionMapping {
 public:
  // Maps `bytes` of `fd` for reading and writing, requests huge pages if
  // available, and touches every page, so that no step has a page fault. If
  // this process has the file mapped already, returns that mapping.
  // Thread-safe.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> Map(
      int fd, uint64_t bytes);

  // Makes a read-only mapping for an observer. Touches no page: the first read
  // of a page may block.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> MapReadOnly(
      int fd, uint64_t bytes);

  RegionMapping(const RegionMapping&) = delete;
  RegionMapping& operator=(const RegionMapping&) = delete;
  ~RegionMapping();

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  LrbcHeader* header() const { return reinterpret_cast<LrbcHeader*>(base_); }

  // Returns the address at an offset that CheckHeader or PlanRegion has
  // accepted.
  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  // The number of its bytes that huge pages back now. Reads /proc/self/smaps.
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

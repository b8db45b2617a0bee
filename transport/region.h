// A region from outside: its names, its memory, and what its header says.
//
// Data flow: the user's text -> a checked name -> the file in /dev/shm of a
// live engine -> a checked copy of its header; for the sides, a mapping.
// Ownership: RegionMapping is shared. An object that returns a view keeps a
// reference, so the memory outlives `close`. All objects of a process share one
// mapping of a region (unless two threads map at the same instant). So views
// stay current across a reconnect to the same engine, and ThreadSanitizer sees
// both sides of a test at the same addresses. The peer shares the pages and may
// change them at any time: values read from them are untrusted.
//
//   absl::StatusOr<LrbcHeader> header = PeekRegion("demo");
//   if (!header.ok()) return header.status();
//   Show(TaskOf(*header), header->num_envs);

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "schema/layout/lrbc.h"

namespace tandem {

// Names of regions and segments. The rule for a region's:
// [A-Za-z0-9_][A-Za-z0-9._-]{0,199}

inline constexpr char kDefaultRegionName[] = "tandem";

// Returns the environment variable LUCKY_SHM_NAME, else kDefaultRegionName.
std::string DefaultRegionName();

// kInvalidArgument for an invalid name; the text has the rule and the first
// violation.
absl::Status CheckRegionName(absl::string_view name);

// Returns the name of a run's segment: kFlanSegmentPrefix and the run id, with
// "_" for "/". kInvalidArgument for a run id that is empty, has a NUL, or is
// too long.
absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id);

// Returns the name of the segment with the scene of a region or a run:
// kSceneSegmentPrefix and the name, by FrameSegmentName's rules.
absl::StatusOr<std::string> SceneSegmentName(absl::string_view name);

// Whether a region or a segment may have this name.
bool IsSharedName(absl::string_view name);

// Returns a checked copy of the region's header, without a mapping. Makes
// system calls; does not wait; changes nothing in the region. Errors:
//  - kInvalidArgument: the name is invalid.
//  - kAccessDenied: another user owns the region, and may not be trusted.
//  - kNotReady: no live engine serves the region, or the file is too short.
//  - kLayoutMismatch: not a region of this version, or its header or one of its
//    tables is invalid.
absl::StatusOr<LrbcHeader> PeekRegion(absl::string_view name);

// Whether a client holds the region's one place for a client. It does not see
// clients that hold no lock. Makes system calls; does not wait. Errors: as
// PeekRegion.
absl::StatusOr<bool> HasLockingClient(absl::string_view name);

// Dead regions: those whose engines have died. A region is removed only while
// this process holds its engine lock, and the path still leads to the locked
// file. It is never truncated: clients may still have it mapped.

// Removes a dead region with this name. Makes system calls; returns an error
// only after 10 ms.
//  - OK: the name is free; another process may take it at any time.
//  - kAlreadyAttached: a live engine has the name, or a region whose program
//    holds no lock (its state is unknown), or a file that is not a region.
//  - kAccessDenied: the file belongs to another user.
absl::Status RemoveIfDead(absl::string_view name);

// Removes every dead region of this user; skips files with unknown state.
void RemoveDeadRegions();

// What a header says. InfosOf needs one that is planned or checked, such as
// PeekRegion's; the others take any bytes.

inline constexpr uint32_t kMaxEnvs = 1u << 24;

// Returns the task as text.
std::string TaskOf(const LrbcHeader& header);

// The parts of the infos section, as offsets in the region; zeros if it is
// absent.
struct InfosPlan {
  uint64_t infos = 0;        // float64[num_envs, info_size]
  uint64_t final_infos = 0;  // float64[num_envs, info_size]
  uint64_t description = 0;
  uint64_t description_bytes = 0;
};
InfosPlan InfosOf(const LrbcHeader& header);

// The parts of the images section, in the same way: each uint8[num_envs,
// height, width, channels].
struct ImagesPlan {
  uint64_t images = 0;
  uint64_t bytes = 0;
  uint64_t final_images = 0;
  uint64_t final_bytes = 0;
};
ImagesPlan ImagesOf(const LrbcHeader& header);

// One array, ring or other part of a region, at the header's offset.
struct RegionSection {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  // Such as "expected a multiple of 64, found 12"; "": none.
  std::string problem = {};
};

// Whether the engine has arrays on a GPU.
inline bool HasGpuArrays(const LrbcHeader& header) {
  return (header.feature_bits & kFeatureGpuArrays) != 0;
}

// "CUDA IPC", "Vulkan", or "mode 7" for another mode; "": the engine has no
// arrays on a GPU.
std::string GpuPathText(const LrbcHeader& header);

// A region in this process's address space. The last reference unmaps. Threads
// may share a RegionMapping.
class RegionMapping {
 public:
  // Maps `bytes` of `memory` for reading and writing, as SharedRegion::Map. If
  // this process has mapped the memory already, returns that mapping.
  // Thread-safe.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> Map(
      const SharedRegion& memory, uint64_t bytes);

  // Makes a read-only mapping for an observer.
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> MapReadOnly(
      const SharedRegion& memory, uint64_t bytes);

  RegionMapping(const RegionMapping&) = delete;
  RegionMapping& operator=(const RegionMapping&) = delete;
  ~RegionMapping() { SharedRegion::Unmap(base_, bytes_); }

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  LrbcHeader* header() const { return reinterpret_cast<LrbcHeader*>(base_); }

  // Returns the address at an offset of a planned or checked header.
  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  // The number of its bytes that huge pages back now. Reads a file.
  uint64_t HugePageBytes() const { return SharedRegion::HugePageBytes(base_); }

 private:
  RegionMapping(std::byte* base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  static absl::StatusOr<std::shared_ptr<const RegionMapping>> MapAnew(
      const SharedRegion& memory, uint64_t bytes, SharedRegion::Access access);

  std::byte* base_;
  uint64_t bytes_;
};

// The task's description, JSON; empty if the region has none. `header` as of
// InfosOf. Valid as long as the mapping.
inline absl::string_view DescriptionOf(const LrbcHeader& header,
                                       const RegionMapping& mapping) {
  const InfosPlan infos = InfosOf(header);
  return {mapping.At<char>(infos.description), infos.description_bytes};
}

}  // namespace tandem

// Names of regions and of segments of frames, and where they lie.
//
// Data flow: what the user typed -> a checked name -> two paths in /dev/shm.
// The rule of names: [A-Za-z0-9_][A-Za-z0-9._-]{0,199}
//
//   absl::Status ok = CheckRegionName("demo");
//   RegionPath("demo")      // /dev/shm/demo
//   SpareLinkPath("demo")   // /dev/shm/.demo.tandem
//   FrameSegmentName("a/b").value()  // "mosaic.fastlane.a_b"

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_NAME_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

inline constexpr char kSharedMemoryDir[] = "/dev/shm";

// The environment variable LUCKY_SHM_NAME, else "tandem".
std::string DefaultRegionName();

// kInvalidArgument, with the rule and what broke it.
absl::Status CheckRegionName(absl::string_view name);

// The name in shared memory of a run's segment of frames: kFlanSegmentPrefix
// and the run id, whose "/" become "_". kInvalidArgument: empty, with a NUL, or
// too long for a name.
absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id);

// What shm_open("/" + name) opens.
std::string RegionPath(absl::string_view name);

// The second hard link, by which an engine restores a name that was
// unlinked, and by which dead regions are found. No legal name leads to it.
std::string SpareLinkPath(absl::string_view name);

// The name, of a region or of a segment of frames, that a file in
// kSharedMemoryDir is the spare link of; else "".
std::string NameOfSpareLink(absl::string_view file_name);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_NAME_H_

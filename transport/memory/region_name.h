// Names of regions and segments, and their paths.
//
// Data flow: the user's text -> a checked name -> two paths in /dev/shm. The
// rule for names: [A-Za-z0-9_][A-Za-z0-9._-]{0,199}
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

// Returns the path that shm_open("/" + name) opens.
std::string RegionPath(absl::string_view name);

// Returns the path of the second hard link. An engine uses it to restore an
// unlinked name, and to find dead regions. No legal name has this path.
std::string SpareLinkPath(absl::string_view name);

// If a file in kSharedMemoryDir is the spare link of a region or segment,
// returns that name; else "".
std::string NameOfSpareLink(absl::string_view file_name);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_NAME_H_

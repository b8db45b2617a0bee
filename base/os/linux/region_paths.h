// The files of shared regions in /dev/shm.
//
// Data flow: a name -> its paths (RegionPath); a file's name -> the name.

#ifndef TANDEM_BASE_OS_LINUX_REGION_PATHS_H_
#define TANDEM_BASE_OS_LINUX_REGION_PATHS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"

namespace tandem {

inline constexpr char kSharedMemoryDir[] = "/dev/shm";

inline std::string SpareLinkPath(absl::string_view name) {
  return RegionPath(name, SharedRegion::Link::kSpare);
}

// If a file in kSharedMemoryDir is named as the spare link of a name, returns
// that name; else "".
std::string NameOfSpareLink(absl::string_view file_name);

}  // namespace tandem

#endif  // TANDEM_BASE_OS_LINUX_REGION_PATHS_H_

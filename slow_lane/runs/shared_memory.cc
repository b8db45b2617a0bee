#include "slow_lane/runs/shared_memory.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/os/posix/region_paths.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

std::string SharedMemoryId() {
  // The kernel numbers the mounted file systems that have no disk.
  struct stat folder;
  if (BootId().empty() || stat(kSharedMemoryDir, &folder) != 0) return "";
  return absl::StrCat(BootId(), " ", folder.st_dev);
}

}  // namespace tandem::slow_lane

// CgroupCores: the processor time that control groups allow.

#ifndef TANDEM_BASE_OS_LINUX_CGROUP_CORES_H_
#define TANDEM_BASE_OS_LINUX_CGROUP_CORES_H_

#include <string>

namespace tandem {

// Returns the least limit, in cores, rounded up, among those of `group` and the
// groups above it, below `mount`; 0: none. Reads files.
int CgroupCores(const std::string& mount, const std::string& group);

}  // namespace tandem

#endif  // TANDEM_BASE_OS_LINUX_CGROUP_CORES_H_

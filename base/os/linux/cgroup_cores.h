// CgroupCores: the processor time that control groups allow.

#pragma once

#include <string>

namespace tandem {

// Returns the least limit, in cores, rounded up, among those of `group` and the
// groups above it, below `mount`; 0: none. Reads files.
int CgroupCores(const std::string& mount, const std::string& group);

}  // namespace tandem

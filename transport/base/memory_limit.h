// TightestMemoryLimit: the memory limit of this process's control groups.
//
// Data flow: /proc/self/cgroup and the groups' files -> limit, use, and the
// file that has the limit. client_py/tandem/doctor/machine.py has the same rule
// in Python, which has to work where nothing native loads; both are tested with
// testdata/memory_limits.json.
//
//   const std::optional<MemoryLimit> limit = TightestMemoryLimit();
//   if (limit && bytes > limit->available_bytes()) return TooMuch(*limit);

#ifndef TANDEM_TRANSPORT_BASE_MEMORY_LIMIT_H_
#define TANDEM_TRANSPORT_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

struct MemoryLimit {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;
  // Page cache and reclaimable slab, part of used_bytes: the kernel frees these
  // before it kills a process.
  uint64_t reclaimable_bytes = 0;
  std::string file;  // that holds the limit

  // What the processes of the group may still take.
  uint64_t available_bytes() const;
};

// Where the control groups are described. Tests give trees of their own.
struct ControlGroupPaths {
  std::string process = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

// The limit with the fewest available bytes, among those of the group that this
// process is in and of all groups above it, in version 1 and version 2. A path
// of another namespace counts as the mount's root. nullopt: no limit, or no
// readable file. Reads files, allocates.
std::optional<MemoryLimit> TightestMemoryLimit(
    const ControlGroupPaths& paths = {});

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_MEMORY_LIMIT_H_

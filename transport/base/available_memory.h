// How much memory this process can still take.
//
// Data flow: /proc/meminfo, /proc/self/cgroup and the control groups' files ->
// limit, use, and the file that has the limit.
// client_py/tandem/doctor/machine.py has the rule of control groups in Python,
// which has to work where nothing native loads; both are tested with
// testdata/memory_limits.json.
//
//   absl::Status status = CheckMemory(
//       bytes, "3000 environments need", "use fewer environments");
//   if (!status.ok()) return status;

#ifndef TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_
#define TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

// The lesser of the kernel's MemAvailable and what the control groups of this
// process leave; the largest number where neither can be read. Reads files.
uint64_t AvailableMemoryBytes(const ControlGroupPaths& groups = {});

// The physical memory that this process holds, with its page tables; 0 where
// the kernel does not say. Reads a file.
uint64_t ResidentMemoryBytes();

// Refuses what the kernel would have to kill a process for: kOutOfSharedMemory
// if `bytes` are more than AvailableMemoryBytes(). The text begins with
// `what_needs`, says the limit, its use and its file, and ends with
// `how_to_need_less`. Reads files.
absl::Status CheckMemory(uint64_t bytes, absl::string_view what_needs,
                         absl::string_view how_to_need_less,
                         const ControlGroupPaths& groups = {});

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_

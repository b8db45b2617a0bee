// The memory that this process can still allocate.
//
// Data flow: /proc/meminfo, /proc/self/cgroup and the control groups' files ->
// limit, use, and the file that has the limit.
// client_py/tandem/doctor/machine.py has the same rule in Python, which must
// work if no native library loads. Tests of both use
// testdata/memory_limits.json.
//
//   absl::Status status = CheckMemory(
//       bytes, "3000 environments need", "use fewer environments");
//   if (!status.ok()) return status;

#pragma once

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
  std::string file;  // contains the limit

  // The bytes that the processes of the group may still allocate.
  uint64_t available_bytes() const;
};

// The paths of the control groups' description. Tests use their own trees.
struct ControlGroupPaths {
  std::string process = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

// Returns the limit with the fewest available bytes, among those of this
// process's group and of all groups above it, in version 1 and version 2. A
// path of another namespace counts as the mount's root. nullopt: no limit, or
// no readable file. Reads files, allocates.
std::optional<MemoryLimit> TightestMemoryLimit(
    const ControlGroupPaths& paths = {});

// Returns the memory that the machine can still give, whatever control groups
// allow; the largest number if it is unknown. Linux: MemAvailable, from a file.
uint64_t FreeMachineBytes();

// Returns the lesser of FreeMachineBytes and the available bytes of this
// process's control groups.
// Reads files.
uint64_t AvailableMemoryBytes(const ControlGroupPaths& groups = {});

// Returns the physical memory of this process, with its page tables; 0 if the
// kernel does not report it. Reads a file.
uint64_t ResidentMemoryBytes();

// Refuses an allocation for which the kernel would have to kill a process:
// kOutOfSharedMemory if `bytes` exceeds AvailableMemoryBytes(). The text begins
// with `what_needs`, has the limit, its use and its file, and ends with
// `how_to_need_less`. Reads files.
absl::Status CheckMemory(uint64_t bytes, absl::string_view what_needs,
                         absl::string_view how_to_need_less,
                         const ControlGroupPaths& groups = {});

}  // namespace tandem

// How much memory this process can still take.
//
//   absl::Status status = CheckMemory(
//       bytes, "3000 environments need", "use fewer environments");
//   if (!status.ok()) return status;

#ifndef TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_
#define TANDEM_TRANSPORT_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/memory_limit.h"

namespace tandem {

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

// TakeDescriptor: duplicates an open file of another process.
//
// Data flow: a process's id, the number of its descriptor -> a descriptor of
// this process for the same open file.
// Ownership: the caller owns the duplicate.
//
//   TANDEM_ASSIGN_OR_RETURN(UniqueFd fd, TakeDescriptor(pid, 7, region->id()));

#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"

namespace tandem {

// `mapped`: memory that the process has mapped, so that a stranger with this id
// in another PID namespace is refused. Makes system calls; does not block.
// Errors, whose texts are what was found:
//   kNotReady      the process has no such descriptor
//   kAccessDenied  the system forbids it; the text has the cause and what to do
//   kUnsupported   this system cannot do it; or no process here has this id and
//                  the memory
//   kSystemCallFailed
absl::StatusOr<UniqueFd> TakeDescriptor(uint32_t pid, uint32_t number,
                                        const SharedRegion::Id& mapped);

}  // namespace tandem

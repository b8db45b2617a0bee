// Finds and removes dead regions, whose engines have died.
//
// Data flow: a path in /dev/shm -> its file's engine lock -> dead or alive. A
// region is removed only while this process holds its engine lock, and the path
// still leads to the locked file. It is never truncated: clients may still have
// it mapped.
//
//   absl::Status free = RemoveIfDead("demo");  // before making a region
//   RemoveDeadRegions();                       // at each engine's start

#ifndef TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Removes a dead region with this name. Makes system calls; returns an error
// only after 10 ms.
//  - OK: the name is free; another process may take it at any time.
//  - kAlreadyAttached: a live engine has the name, or a region whose program
//    holds no lock (its state is unknown), or a file that is not a region.
//  - kAccessDenied: the file belongs to another user.
absl::Status RemoveIfDead(absl::string_view name);

// As RemoveIfDead, for names that programs without a lock use (MOSAIC's). A
// file of this user without a live writer's lock is dead, with any content.
absl::Status RemoveUnlessLocked(absl::string_view name);

// Removes every dead region of this user; skips files with unknown state.
void RemoveDeadRegions();

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_

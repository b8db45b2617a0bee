// Regions whose engines are dead: found, and removed.
//
// Data flow: a path in /dev/shm -> its file's engine lock -> dead or alive.
// A region is removed only while its engine lock is in our hands and the path
// still leads to the very file that we locked, and never by truncating it:
// clients may still have it mapped.
//
//   absl::Status free = RemoveIfDead("demo");  // before making a region
//   RemoveDeadRegions();                       // at every engine's start

#ifndef TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Makes the name free. OK: nothing is in the way any more (another may come at
// any time). kAlreadyAttached: a live engine has it, or a region of a program
// that keeps no lock and so cannot be judged, or a file that is no region.
// kAccessDenied: another user's. Makes system calls; says no only after 10 ms.
absl::Status RemoveIfDead(absl::string_view name);

// As RemoveIfDead, for a name whose files may be of programs that keep no lock
// (MOSAIC's): a file of this user without a live writer's lock is dead,
// whatever is in it.
absl::Status RemoveUnlessLocked(absl::string_view name);

// Removes every dead region of this user; skips what it cannot judge.
void RemoveDeadRegions();

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_DEAD_REGION_H_

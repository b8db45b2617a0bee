// Removes dead files of programs that hold no lock.
//
// Data flow: a path in /dev/shm -> its file's writer lock -> dead or alive.
// region.h has the same for regions, and the rules.
//
//   absl::Status free = RemoveUnlessLocked("mosaic.fastlane.run-7");

#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// As RemoveIfDead, for names that programs without a lock use (MOSAIC's). A
// file of this user without a live writer's lock is dead, with any content.
absl::Status RemoveUnlessLocked(absl::string_view name);

}  // namespace tandem

// SharedMemoryId: identifies the shared memory of a process.
//
// Data flow: the kernel's boot id and the device number of /dev/shm -> a text
// that two processes compare, on one machine or on two.

#pragma once

#include <string>

namespace tandem::slow_lane {

// Equal in two processes if and only if files in /dev/shm of one are those of
// the other; containers of one machine usually have their own. Empty: unknown.
// One system call.
std::string SharedMemoryId();

}  // namespace tandem::slow_lane

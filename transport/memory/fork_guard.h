// What must not survive a fork: lock descriptors, and objects that hold them.
//
// Data flow: fork -> the child's handler closes the guarded descriptors and
// counts the fork -> objects see that they belong to another process.
// An open-file-description lock lives until the last copy of its descriptor is
// closed; without this a forked child would keep a dead parent's lock. (A raw
// clone system call runs no handlers; exec closes the descriptors anyway.)
//
//   const uint32_t born_in = ForkCount();
//   int fd = OpenGuarded(path);
//   ... if (ForkCount() != born_in) return ErrorCode::kForkedChild;

#ifndef TANDEM_TRANSPORT_MEMORY_FORK_GUARD_H_
#define TANDEM_TRANSPORT_MEMORY_FORK_GUARD_H_

#include <cstdint>

namespace tandem {

// How many forks lie between the start of this program and this process.
// Starts at 0; wraps harmlessly. Neither blocks nor allocates.
uint32_t ForkCount();

// open(path, O_RDWR | O_CLOEXEC) whose descriptor a forked child closes at
// once. -1 and errno as open(2). May allocate. Thread-safe, also against a
// fork.
int OpenGuarded(const char* path);

// Closes it. Only in the process that opened it.
void CloseGuarded(int fd);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_FORK_GUARD_H_

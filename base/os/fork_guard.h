// Closes lock descriptors in a forked child, and lets objects detect a fork.
//
// Data flow: fork -> the child's handler closes the guarded descriptors and
// increments the fork count -> objects detect that they belong to another
// process. The kernel holds an open-file-description lock until the last copy
// of its descriptor is closed. Without the handler a forked child would keep a
// dead parent's lock. A direct clone system call runs no handlers; exec closes
// the descriptors anyway.
//
//   const uint32_t born_in = ForkCount();
//   int fd = OpenGuarded(path);
//   ... if (ForkCount() != born_in) return ErrorCode::kForkedChild;

#ifndef TANDEM_BASE_OS_FORK_GUARD_H_
#define TANDEM_BASE_OS_FORK_GUARD_H_

#include <atomic>
#include <cstdint>

namespace tandem {

// The number of forks between the start of this program and this process.
// Begins at 0; wraps, with no effect. Neither blocks nor allocates.
inline uint32_t ForkCount();

// Calls OpenAboveStandardStreams(path, O_RDWR); a forked child closes the
// descriptor at once. Returns -1 and errno as open(2). May allocate.
// Thread-safe, also against a fork.
int OpenGuarded(const char* path);

// Closes the descriptor. Legal only in the process that opened it.
void CloseGuarded(int fd);

// ---------------------------------------------------------------------------

namespace fork_guard_internal {
extern std::atomic<uint32_t> fork_count;
}

uint32_t ForkCount() {
  // relaxed: the count changes only in a process with one thread.
  return fork_guard_internal::fork_count.load(std::memory_order_relaxed);
}

}  // namespace tandem

#endif  // TANDEM_BASE_OS_FORK_GUARD_H_

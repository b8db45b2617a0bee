// ForkCount: lets objects detect that they are in a forked child.
//
// Data flow: fork -> the child's handler increments the fork count -> objects
// detect that they belong to another process. A direct clone system call runs
// no handlers.
//
//   const uint32_t born_in = ForkCount();
//   ... if (ForkCount() != born_in) return ErrorCode::kForkedChild;

#pragma once

#include <atomic>
#include <cstdint>

namespace tandem {

// The number of forks between the start of this program and this process.
// Begins at 0; wraps, with no effect. Neither blocks nor allocates.
inline uint32_t ForkCount();

// Every child that this process forks calls `handler` before fork returns.
void AfterForkInChild(void (*handler)());

// ---------------------------------------------------------------------------

namespace fork_guard_internal {
extern std::atomic<uint32_t> fork_count;
}

uint32_t ForkCount() {
  // relaxed: the count changes only in a process with one thread.
  return fork_guard_internal::fork_count.load(std::memory_order_relaxed);
}

}  // namespace tandem

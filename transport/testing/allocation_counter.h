// Counts the allocations of a process, for tests that allow none. Linking it
// replaces malloc and related functions, and so operator new, in the program.
//
// Data flow: malloc in any thread -> allocation_count's target.
//
//   std::atomic<uint64_t> count = 0;
//   tandem::allocation_count = &count;
//   Step();
//   EXPECT_EQ(count, 0);

#pragma once

#include <atomic>
#include <cstdint>

namespace tandem {

// The counter; null disables counting. It may be in memory shared with a forked
// process, which then sets its own. Set it before other threads start.
extern std::atomic<uint64_t>* allocation_count;

}  // namespace tandem

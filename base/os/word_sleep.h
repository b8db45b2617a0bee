// SleepOnWord, WakeSleepers: threads of several processes sleep on a word of
// shared memory.
//
// Data flow: the waker changes the word, then wakes -> a sleeper returns, and
// looks at the word again. Linux: futex(2).
//
//   SleepOnWord(word.address(), seen, 50'000);  // sleeper
//   WakeSleepers(word.address());               // waker, after the change

#pragma once

#include <cstdint>

namespace tandem {

// Sleeps while `*word == seen`, for `timeout_ns` at most. Returns true only if
// a signal handler ran; a wake, a changed word, and the time-out all give
// false, and the caller looks for itself.
bool SleepOnWord(uint32_t* word, uint32_t seen, int64_t timeout_ns);

// Wakes all threads that sleep on `word`. One system call.
void WakeSleepers(uint32_t* word);

}  // namespace tandem

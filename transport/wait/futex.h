// futex(2), between processes: the word lies in a shared mapping.
//
//   FutexWait(word.address(), seen, 50'000);  // sleeper
//   FutexWakeAll(word.address());             // waker, after changing the word

#ifndef TANDEM_TRANSPORT_WAIT_FUTEX_H_
#define TANDEM_TRANSPORT_WAIT_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>

namespace tandem {

// Sleeps while `*word == seen`, for `timeout_ns` at most. Returns true only if
// a signal handler ran; a wake, a changed word, and the time-out all give
// false, and the caller looks for itself.
inline bool FutexWait(uint32_t* word, uint32_t seen, int64_t timeout_ns) {
  const timespec timeout = {.tv_sec = timeout_ns / 1'000'000'000,
                            .tv_nsec = timeout_ns % 1'000'000'000};
  return syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0) < 0 &&
         errno == EINTR;
}

// Wakes all threads that sleep on `word`.
inline void FutexWakeAll(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_FUTEX_H_

#include "base/os/word_sleep.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace tandem {

bool SleepOnWord(uint32_t* word, uint32_t seen, int64_t timeout_ns) {
  const timespec timeout = {.tv_sec = timeout_ns / 1'000'000'000,
                            .tv_nsec = timeout_ns % 1'000'000'000};
  // Not FUTEX_PRIVATE_FLAG: the word lies in a mapping of several processes.
  return syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0) < 0 &&
         errno == EINTR;
}

void WakeSleepers(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tandem

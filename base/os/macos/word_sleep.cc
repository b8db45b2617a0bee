#include "base/os/word_sleep.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

// Of os/os_sync_wait_on_address.h, which macOS has from 14.4 on: until then
// they are null.
extern "C" {
int os_sync_wait_on_address_with_timeout(void* word, uint64_t seen,
                                         size_t bytes, uint32_t flags,
                                         uint32_t clock, uint64_t timeout_ns)
    __attribute__((weak_import));
int os_sync_wake_by_address_all(void* word, size_t bytes, uint32_t flags)
    __attribute__((weak_import));
}

namespace tandem {
namespace {

constexpr uint32_t kShared = 1;         // OS_SYNC_WAIT_ON_ADDRESS_SHARED
constexpr uint32_t kMachAbsolute = 32;  // OS_CLOCK_MACH_ABSOLUTE_TIME
// How often a sleeper looks on an older system.
constexpr int64_t kLookNs = 200'000;

}  // namespace

bool SleepOnWord(uint32_t* word, uint32_t seen, int64_t timeout_ns) {
  if (timeout_ns <= 0) return false;
  if (os_sync_wait_on_address_with_timeout == nullptr) {
    const timespec look = {.tv_sec = 0,
                           .tv_nsec = std::min(timeout_ns, kLookNs)};
    return nanosleep(&look, nullptr) != 0;
  }
  return os_sync_wait_on_address_with_timeout(
             word, seen, sizeof(*word), kShared, kMachAbsolute,
             static_cast<uint64_t>(timeout_ns)) < 0 &&
         errno == EINTR;
}

void WakeSleepers(uint32_t* word) {
  if (os_sync_wake_by_address_all == nullptr) return;
  (void)os_sync_wake_by_address_all(word, sizeof(*word), kShared);
}

}  // namespace tandem

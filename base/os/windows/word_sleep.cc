#include "base/os/word_sleep.h"

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/os/windows/mapped_words.h"
#include "base/os/windows/native.h"

namespace tandem {
namespace {

struct Mapping {
  uint64_t bytes;
  std::string name;
  bool group_access;
  std::mutex mutex;
  std::map<uint64_t, UniqueFd> events;  // by the word's offset
};

struct Mappings {
  std::shared_mutex mutex;
  std::map<uintptr_t, Mapping> by_base;
};

Mappings& TheMappings() {
  static auto* const mappings = new Mappings;  // never destroyed: as mappings
  return *mappings;
}

// The event of a word's sleepers, in all processes: set by each wake, reset by
// each new sleeper. nullptr: the word is in no shared memory, or the system has
// no memory for an event.
HANDLE EventOf(const uint32_t* word) {
  const auto address = reinterpret_cast<uintptr_t>(word);
  Mappings& mappings = TheMappings();
  const std::shared_lock<std::shared_mutex> lock(mappings.mutex);
  auto found = mappings.by_base.upper_bound(address);
  if (found == mappings.by_base.begin()) return nullptr;
  auto& [base, mapping] = *--found;
  const uint64_t offset = address - base;
  if (offset >= mapping.bytes) return nullptr;
  const std::lock_guard<std::mutex> events_lock(mapping.mutex);
  UniqueFd& event = mapping.events[offset];
  if (!event.valid()) {
    ObjectAccess access(mapping.group_access);
    const std::string name = absl::StrCat(mapping.name, "-bell-", offset);
    event = Owned(CreateEventExW(access.attributes(), Wide(name).c_str(),
                                 CREATE_EVENT_MANUAL_RESET,
                                 EVENT_MODIFY_STATE | SYNCHRONIZE));
  }
  return event.valid() ? HandleOf(event.get()) : nullptr;
}

bool Holds(uint32_t* word, uint32_t seen) {
  // SYNC(word_sleep.event): acquire; the word after ResetEvent, a full barrier.
  return std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire) ==
         seen;
}

// This thread's timer, finer than the 1 to 16 ms of a wait's own time-out;
// nullptr: the system has none (before Windows 10 1803).
HANDLE FineTimer() {
  constexpr DWORD kHighResolution = 2;  // not in mingw-w64's headers
  thread_local const UniqueFd timer = Owned(CreateWaitableTimerExW(
      nullptr, nullptr, kHighResolution, TIMER_MODIFY_STATE | SYNCHRONIZE));
  return timer.valid() ? HandleOf(timer.get()) : nullptr;
}

// Waits for the event, or until the time is over.
void Await(HANDLE event, int64_t timeout_ns) {
  const HANDLE timer = FineTimer();
  LARGE_INTEGER relative;
  relative.QuadPart = -((timeout_ns + 99) / 100);
  if (timer == nullptr ||
      !SetWaitableTimer(timer, &relative, 0, nullptr, nullptr, FALSE)) {
    WaitForSingleObject(event,
                        static_cast<DWORD>((timeout_ns + 999'999) / 1'000'000));
    return;
  }
  const HANDLE either[] = {event, timer};
  WaitForMultipleObjects(2, either, FALSE, INFINITE);
}

}  // namespace

void AddMapping(const std::byte* base, uint64_t bytes, std::string name,
                bool group_access) {
  Mappings& mappings = TheMappings();
  const std::lock_guard<std::shared_mutex> lock(mappings.mutex);
  Mapping& mapping = mappings.by_base[reinterpret_cast<uintptr_t>(base)];
  mapping.bytes = bytes;
  mapping.name = std::move(name);
  mapping.group_access = group_access;
}

void RemoveMapping(const std::byte* base) {
  Mappings& mappings = TheMappings();
  const std::lock_guard<std::shared_mutex> lock(mappings.mutex);
  mappings.by_base.erase(reinterpret_cast<uintptr_t>(base));
}

// A wake between the check of the word and the wait leaves the event set,
// unless another sleeper resets it just then: that sleep lasts its time-out.
bool SleepOnWord(uint32_t* word, uint32_t seen, int64_t timeout_ns) {
  if (!Holds(word, seen)) return false;
  const HANDLE event = EventOf(word);
  if (event == nullptr) {
    WaitOnAddress(word, &seen, sizeof(seen),
                  static_cast<DWORD>((timeout_ns + 999'999) / 1'000'000));
    return false;
  }
  ResetEvent(event);
  if (Holds(word, seen)) Await(event, timeout_ns);
  return false;  // no handler of a signal runs in a thread of ours
}

void WakeSleepers(uint32_t* word) {
  // SYNC(word_sleep.event): release; SetEvent, a full barrier after the word.
  const HANDLE event = EventOf(word);
  if (event != nullptr) {
    SetEvent(event);
  } else {
    WakeByAddressAll(word);
  }
}

}  // namespace tandem

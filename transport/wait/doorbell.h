// Doorbell: how one side sleeps until the other has written something.
//
// Data flow: the sleeper announces itself, polls once more, and sleeps on the
// bell. The notifier stores its data, reads the number of sleepers, and wakes
// them. Ownership: two words of the region for each side. The threads of a
// doorbell's owner sleep on it; the owner's peer notifies them.
//
//   Doorbell bell(&header->engine_doorbell, &header->engine_sleepers);
//   // engine:                                  // client:
//   bell.SleepUnless(ready, slice_ns);          action_seq.store(...);
//                                               bell.NotifyIfWaiting();

#pragma once

#include <atomic>
#include <cstdint>

#include "base/os/word_sleep.h"
#include "schema/layout/shared_word.h"

namespace tandem {

// A view; the region outlives it. Nothing here trusts the words: whatever the
// peer writes, a sleep ends after its slice at the latest.
//
//  word      writer    reader    publishes                          initially
//  bell      notifier  owner     nothing; a change ends the sleep   0
//  sleepers  owner     notifier  that a sleeper waits               0
class Doorbell {
 public:
  Doorbell(SharedWord<uint32_t>* bell, SharedWord<uint32_t>* sleepers)
      : bell_(bell), sleepers_(sleepers) {}

  // Notifier: call after the store that the owner may be waiting for. Makes a
  // system call only when the owner sleeps.
  void NotifyIfWaiting() {
    if (AnyWaiting()) NotifyAll();
  }

  // Notifier: whether the owner sleeps, or is about to; call after the store
  // that it may be waiting for, and then NotifyAll.
  bool AnyWaiting() const {
    // SYNC(doorbell.dekker): fence; the caller's store, then this load. Were
    // the two reordered, the owner could miss the store and we its sleep.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // relaxed: the fence above orders it.
    return sleepers_->load(std::memory_order_relaxed) != 0;
  }

  // Notifier: wakes every sleeper. One system call.
  void NotifyAll() {
    // SYNC(doorbell.dekker): fence; the caller's store, then the bell: a
    // sleeper that sees the bell changed sees the store.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // relaxed: the words that matter were published by their own releases; the
    // bell only has to differ, and futex(2) orders its compare with the wake.
    bell_->fetch_add(1, std::memory_order_relaxed);
    WakeSleepers(bell_->address());
  }

  // How a sleep ended.
  enum class Wake : uint8_t {
    kReady,      // it did not begin: the condition held
    kNotified,   // the peer notified
    kSignal,     // a signal handler ran
    kSliceOver,  // neither: the slice is over
  };

  // Owner: sleeps for `slice_ns` at most, unless `ready()` already. `ready`
  // must load with acquire what the notifier stored. One system call.
  template <typename Ready>
  Wake SleepUnless(Ready&& ready, int64_t slice_ns) {
    // relaxed: a stale value only makes futex(2) return at once.
    const uint32_t seen = bell_->load(std::memory_order_relaxed);
    // relaxed: the fence below orders it before ready's loads.
    sleepers_->fetch_add(1, std::memory_order_relaxed);
    // SYNC(doorbell.dekker): fence; our announcement, then ready's loads.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Wake wake = Wake::kReady;
    if (!ready()) {
      const bool signalled = SleepOnWord(bell_->address(), seen, slice_ns);
      // relaxed: as above.
      const bool notified = bell_->load(std::memory_order_relaxed) != seen;
      wake = notified    ? Wake::kNotified
             : signalled ? Wake::kSignal
                         : Wake::kSliceOver;
    }
    // relaxed: a late sight of it costs the notifier one needless wake.
    sleepers_->fetch_sub(1, std::memory_order_relaxed);
    return wake;
  }

  // Owner: clears the count that an owner left when it died asleep. Legal while
  // no thread of this side sleeps.
  void ClearSleepers() {
    // relaxed: as in SleepUnless.
    sleepers_->store(0, std::memory_order_relaxed);
  }

 private:
  SharedWord<uint32_t>* bell_;
  SharedWord<uint32_t>* sleepers_;
};

}  // namespace tandem

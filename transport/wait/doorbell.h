// Doorbell: how one side sleeps until the other has written something.
//
// Data flow: sleeper announces itself, looks once more, sleeps on the bell;
// the ringer stores what it has to say, looks for sleepers, rings.
// Ownership: two words of the region for each side. The owner of a doorbell
// sleeps on it (any number of its threads); its peer rings it.
//
//   Doorbell bell(&header->engine_doorbell, &header->engine_sleepers);
//   // engine:                                  // client:
//   bell.SleepUnless(ready, slice_ns);          action_seq.store(...);
//                                               bell.NotifyIfWaiting();

#ifndef TANDEM_TRANSPORT_WAIT_DOORBELL_H_
#define TANDEM_TRANSPORT_WAIT_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "schema/layout/shared_word.h"
#include "transport/wait/futex.h"

namespace tandem {

// A view; the region outlives it. Nothing here trusts the words: whatever the
// peer writes, a sleep ends after its slice at the latest.
//
//  word      writer  reader  publishes                          initially
//  bell      ringer  owner   nothing; a change ends the sleep   0
//  sleepers  owner   ringer  that a ring is wanted              0
class Doorbell {
 public:
  Doorbell(SharedWord<uint32_t>* bell, SharedWord<uint32_t>* sleepers)
      : bell_(bell), sleepers_(sleepers) {}

  // Ringer: call after the store that the owner may be waiting for. Makes a
  // system call only when the owner sleeps.
  void NotifyIfWaiting() {
    // SYNC(doorbell.dekker): fence; the caller's store, then this load. Were
    // the two reordered, the owner could miss the store and we its sleep.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // relaxed: the fence above orders it.
    if (sleepers_->load(std::memory_order_relaxed) == 0) return;
    Ring();
  }

  // Ringer: wakes every sleeper. One system call.
  void Ring() {
    // SYNC(doorbell.dekker): fence; the caller's store, then the bell: a
    // sleeper that sees the bell changed sees the store.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // relaxed: the words that matter were published by their own releases; the
    // bell only has to differ, and futex(2) orders its compare with the wake.
    bell_->fetch_add(1, std::memory_order_relaxed);
    FutexWakeAll(bell_->address());
  }

  // How a sleep ended.
  enum class Wake : uint8_t {
    kReady,    // it did not begin: the condition held
    kRung,     // the bell rang
    kSignal,   // a signal handler ran
    kSilence,  // neither: the slice is over
  };

  // Owner: sleeps for `slice_ns` at most, unless `ready()` already. `ready`
  // must load with acquire what the ringer stored. One system call.
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
      const bool signalled = FutexWait(bell_->address(), seen, slice_ns);
      // relaxed: as above.
      const bool rung = bell_->load(std::memory_order_relaxed) != seen;
      wake = rung ? Wake::kRung : signalled ? Wake::kSignal : Wake::kSilence;
    }
    // relaxed: a late sight of it costs the ringer one needless wake.
    sleepers_->fetch_sub(1, std::memory_order_relaxed);
    return wake;
  }

  // Owner: forgets the sleepers of an owner that died asleep. Only when no
  // thread of this side sleeps.
  void ForgetSleepers() {
    // relaxed: as in SleepUnless.
    sleepers_->store(0, std::memory_order_relaxed);
  }

 private:
  SharedWord<uint32_t>* bell_;
  SharedWord<uint32_t>* sleepers_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_DOORBELL_H_

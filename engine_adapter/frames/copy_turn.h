// CopyTurn: hands copies of an engine's state from the stepping thread to a
// thread in the background, which asks for them.
//
// Data flow: the background thread asks -> the stepping thread copies between
// two exchanges -> the background thread uses the copies.
// Ownership: the object of both threads' data owns it. The copies belong to one
// thread at a time; turn_ says to which.
//
//   turn.Give([&] { copies = ...; });                 // the stepping thread
//   if (turn.Await(patience_ns, wake)) Use(copies);   // the background thread
//
//   word   writer         readers     publishes  initially
//   turn_  turn's thread  both        the copies  kBackground
//   stop_  the owner      background  no data     0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "schema/layout/shared_word.h"
#include "transport/wait/doorbell.h"

namespace tandem {

// For so long a copy waits for the next exchange, which costs nothing. Then the
// background thread wakes the stepping thread: if that shares a core with a
// trainer, it interrupts the trainer.
inline constexpr int64_t kNextExchangeNs = 10'000'000;

// Steps never wait for the background thread.
class CopyTurn {
 public:
  // The stepping thread calls these.

  // Whether the background thread waits for copies.
  bool IsAsked() const {
    // SYNC(frames.turn): acquire; the background thread has finished with the
    // copies.
    return turn_.load(std::memory_order_acquire) == kSteps;
  }
  // If IsAsked, calls `copy`, wakes that thread
  // and returns true. Otherwise one load.
  template <typename Copy>
  bool Give(Copy copy) {
    if (!IsAsked()) return false;
    copy();
    // SYNC(frames.turn): release; the copies before the word.
    turn_.store(kBackground, std::memory_order_release);
    bell_.NotifyIfWaiting();
    return true;
  }
  // Makes the background thread check its conditions. Makes a system call only
  // if it sleeps.
  void Ring() { bell_.NotifyIfWaiting(); }

  // The background thread calls these.

  // Asks the stepping thread for copies, and calls `wake` if they have not come
  // after `patience_ns`. Returns false if this thread must end.
  bool Await(int64_t patience_ns, const std::function<void()>& wake) {
    // SYNC(frames.turn): release; our last read of the copies before the word.
    turn_.store(kSteps, std::memory_order_release);
    const auto copied = [this] {
      // SYNC(frames.turn): acquire; the word, then the copies.
      return turn_.load(std::memory_order_acquire) == kBackground || Stopping();
    };
    if (patience_ns > 0) (void)bell_.SleepUnless(copied, patience_ns);
    if (!copied()) wake();
    while (!copied()) (void)bell_.SleepUnless(copied, kSliceNs);
    return !Stopping();
  }
  // Sleeps until `at_ns`, or until `condition` or Stopping is true after Ring
  // or Stop.
  template <typename Condition>
  void SleepUntil(int64_t at_ns, Condition condition) {
    const int64_t slice_ns = at_ns - MonotonicNanos();
    if (slice_ns <= 0) return;
    (void)bell_.SleepUnless([&] { return Stopping() || condition(); },
                            slice_ns);
  }
  bool Stopping() const {
    // relaxed: the flag publishes no other data.
    return stop_.load(std::memory_order_relaxed) != 0;
  }

  // The owner: the background thread must end. Does not wait.
  void Stop() {
    // relaxed: as above.
    stop_.store(1, std::memory_order_relaxed);
    bell_.NotifyAll();
  }

 private:
  enum Turn : uint32_t { kBackground, kSteps };
  static constexpr int64_t kSliceNs = 1'000'000'000;

  alignas(128) std::atomic<uint32_t> turn_{kBackground};
  std::atomic<uint32_t> stop_{0};
  SharedWord<uint32_t> bell_word_{};
  SharedWord<uint32_t> sleepers_word_{};
  Doorbell bell_{&bell_word_, &sleepers_word_};  // wakes the background thread
};

}  // namespace tandem

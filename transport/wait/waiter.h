// Waiter: waits until a condition on shared words holds, by spinning, sleeping
// or both, with a deadline and an eye on the peer.
//
// Data flow: condition <- words that the peer stores; bell <- the peer rings.
// Ownership: one Waiter for each thread that waits; it learns from its waits.
//
//   Waiter waiter(Doorbell(...), WaitStrategy::kAdaptive);
//   ErrorCode code = waiter.Until(
//       [&] { return seq.load(std::memory_order_acquire) == wanted; },
//       Deadline::After(10), watch);

#ifndef TANDEM_TRANSPORT_WAIT_WAITER_H_
#define TANDEM_TRANSPORT_WAIT_WAITER_H_

#include <algorithm>
#include <cstdint>

#include "schema/layout/error_codes.h"
#include "transport/base/clock.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/spin_budget.h"
#include "transport/wait/wait_strategy.h"

namespace tandem {

// What a long wait looks after. Check is called first after about a
// millisecond of spinning or 10 of sleep, then every 5 to 10, after a signal,
// and after a ring that did not bring the condition.
class WaitWatch {
 public:
  virtual ~WaitWatch() = default;
  // kOk: wait on. Anything else ends the wait with that code, unless the
  // condition holds by then. `interrupted`: a signal handler has run.
  virtual ErrorCode Check(int64_t now_ns, bool interrupted) = 0;
};

// Not thread-safe. No call allocates.
class Waiter {
 public:
  Waiter(Doorbell own_bell, WaitStrategy strategy)
      : bell_(own_bell), strategy_(strategy) {}

  // Waits until `ready()`. kOk: it holds. kStepTimeout: it did not by
  // `deadline` (Deadline::Now() looks once and makes no system call; any other
  // that has passed looks a few times). Else what `watch` said.
  // `ready` runs many times, and not again once it was true; it must load with
  // acquire.
  template <typename Ready>
  ErrorCode Until(Ready ready, Deadline deadline, WaitWatch& watch);

 private:
  // Some 2 us on a machine whose `pause` takes 140 cycles: most of a quick
  // peer's answers come in it, and it reads no clock.
  static constexpr int kBlindSpins = 48;
  static constexpr int kSpinsPerClockRead = 16;
  static constexpr int64_t kFirstCheckNs = 1'000'000;
  static constexpr int64_t kCheckEveryNs = 5'000'000;
  // A sleep for a peer that rings has the longest slice: a shorter one would
  // arm a hardware timer each time (measured: 15 us a wait instead of 2). For a
  // peer that does not, it lasts no longer than the wait has lasted already,
  // within these, so that such a peer is at most twice as slow as its own work.
  static constexpr int64_t kShortestSleepNs = 50'000;
  static constexpr int64_t kLongestSleepNs = 10'000'000;

  template <typename Ready>
  ErrorCode UntilSlowly(Ready& ready, Deadline deadline, WaitWatch& watch,
                        int64_t spin_ns);

  Doorbell bell_;
  WaitStrategy strategy_;
  SpinBudget budget_;
  bool peer_rings_ = true;  // as the last sleep that ended well showed
};

// ---------------------------------------------------------------------------

template <typename Ready>
ErrorCode Waiter::Until(Ready ready, Deadline deadline, WaitWatch& watch) {
  if (ready()) return ErrorCode::kOk;
  if (deadline == Deadline::Now()) return ErrorCode::kStepTimeout;
  int64_t spin_ns = 0;
  if (strategy_ == WaitStrategy::kSpin) {
    spin_ns = Deadline::Infinite().at_ns();
  } else if (strategy_ == WaitStrategy::kAdaptive) {
    spin_ns = budget_.ForThisWait();
  }
  if (spin_ns > 0) {
    for (int i = 0; i < kBlindSpins; ++i) {
      Relax();
      if (ready()) {
        budget_.Paid(0);
        return ErrorCode::kOk;
      }
    }
  }
  return UntilSlowly(ready, deadline, watch, spin_ns);
}

template <typename Ready>
ErrorCode Waiter::UntilSlowly(Ready& ready, Deadline deadline, WaitWatch& watch,
                              int64_t spin_ns) {
  const int64_t start = MonotonicNanos();
  int64_t now = start;
  int64_t next_check = start + kFirstCheckNs;
  bool spinning = spin_ns > 0;
  for (;;) {
    bool interrupted = false;
    bool rung = false;
    if (spinning) {
      for (int i = 0; i < kSpinsPerClockRead; ++i) {
        Relax();
        if (ready()) {
          budget_.Paid(MonotonicNanos() - start);
          return ErrorCode::kOk;
        }
      }
    } else {
      const int64_t slice =
          peer_rings_
              ? kLongestSleepNs
              : std::clamp(now - start, kShortestSleepNs, kLongestSleepNs);
      const Doorbell::Wake wake = bell_.SleepUnless(
          ready, std::clamp<int64_t>(deadline.at_ns() - now, 0, slice));
      if (wake == Doorbell::Wake::kReady) return ErrorCode::kOk;
      if (ready()) {
        peer_rings_ = wake == Doorbell::Wake::kRung;
        return ErrorCode::kOk;
      }
      interrupted = wake == Doorbell::Wake::kSignal;
      rung = wake == Doorbell::Wake::kRung;
    }
    now = MonotonicNanos();
    if (deadline.PassedAt(now)) {
      return ready() ? ErrorCode::kOk : ErrorCode::kStepTimeout;
    }
    // A ring that brought no answer: the peer has left, perhaps.
    if (now >= next_check || interrupted || rung) {
      next_check = now + kCheckEveryNs;
      if (const ErrorCode code = watch.Check(now, interrupted);
          code != ErrorCode::kOk) {
        // What the peer did last counts, if it did it before it left.
        return ready() ? ErrorCode::kOk : code;
      }
    }
    if (spinning && now - start >= spin_ns) {
      spinning = false;
      budget_.Failed();
    }
  }
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_WAITER_H_

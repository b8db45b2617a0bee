// Waiter: waits until a condition on shared words holds, by spinning, sleeping
// or both, with a deadline and a check of the peer.
//
// Data flow: condition <- words that the peer stores; bell <- the peer
// notifies. Ownership: one Waiter for each thread that waits; it learns from
// its waits. docs/waiting.md explains the algorithm.
//
//   Waiter waiter(Doorbell(...), WaitStrategy::kAdaptive);
//   ErrorCode code = waiter.Until(
//       [&] { return seq.load(std::memory_order_acquire) == wanted; },
//       Deadline::After(10), watch);

#ifndef TANDEM_TRANSPORT_WAIT_WAITER_H_
#define TANDEM_TRANSPORT_WAIT_WAITER_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/os/machine.h"
#include "base/os/tick_clock.h"
#include "schema/layout/error_codes.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/spin_budget.h"
#include "transport/wait_strategy.h"

namespace tandem {

// What a long wait calls. Check is called first after about 1 ms of spinning or
// of short sleeps, or after a sleep of 10 ms. Then it is called every 5 to 10
// ms, after a signal, and after a wake-up that did not bring the condition.
class WaitWatch {
 public:
  virtual ~WaitWatch() = default;
  // Once, before the first sleep or after kQuickNs; before any Check.
  static constexpr int64_t kQuickNs = 20'000;
  virtual void OnLongWait() {}
  // kOk: wait on. Anything else ends the wait with that code, unless the
  // condition holds by then. `interrupted`: a signal handler has run.
  virtual ErrorCode Check(int64_t now_ns, bool interrupted) = 0;
};

// The machine as a waiter uses it. Tests pass one whose time they drive.
struct WaitMachine {
  using Clock = TickClock;
  using Bell = Doorbell;
  static void Pause() { Relax(); }
  static void Yield() { YieldCore(); }
  static bool IsRealTime() { return IsRealTimeThread(); }
  // Whether the calling thread may run on more than one core.
  static bool MayMigrate() { return AllowedCores() != 1; }
};

// Not thread-safe. No call allocates. A spin makes no system call, except for
// a long adaptive one's sched_yield every 50 us, sched_getscheduler every 10 ms
// of a kSpin one, and sched_getaffinity before a loan.
template <typename Machine>
class BasicWaiter {
 public:
  BasicWaiter(typename Machine::Bell own_bell, WaitStrategy strategy)
      : bell_(own_bell), strategy_(strategy) {}

  // Waits until `ready()`. kOk: it holds. kStepTimeout: it did not by
  // `deadline` (Deadline::Now() polls once and makes no system call; any other
  // that has passed polls twice). Else what `watch` returned.
  // `ready` runs many times, and not again once it was true; it must load with
  // acquire.
  template <typename Ready>
  ErrorCode Until(Ready ready, Deadline deadline, WaitWatch& watch);

  // When the last Until's condition came, by the waiter's clock: a poll or two
  // early if that was while it spun. After a sleep, or if it held before: now.
  int64_t CameAtNs() { return came_at_ns_ != 0 ? came_at_ns_ : clock_.Nanos(); }

  // The waiter's clock, a TickClock: never before what CameAtNs returned.
  int64_t NowNs() { return clock_.Nanos(); }

 private:
  static constexpr int64_t kFirstCheckNs = 1'000'000;
  static constexpr int64_t kCheckEveryNs = 5'000'000;
  // A long spin yields its core this often, for threads that compute little,
  // such as one of this process that calls the engine. Without it they wait for
  // the scheduler's next tick, milliseconds. A yield takes 0.2 us, and more
  // than kYieldedNs where another thread ran.
  static constexpr int64_t kYieldEveryNs = 50'000;
  static constexpr int64_t kYieldedNs = 1'500;
  // This many answers in a row that came during a yield show that the peer
  // needs this core.
  static constexpr int kYieldedToThePeer = 4;
  // No yield while the GIL may be held.
  static_assert(kYieldEveryNs > WaitWatch::kQuickNs);
  // How long kSpin spins under SCHED_FIFO or SCHED_RR before it sleeps. Until
  // then a peer of a lower priority on this core does not run. One of the same
  // priority runs only after the quantum of SCHED_RR (100 ms by default).
  static constexpr int64_t kRealTimeSpinNs = 10'000'000;
  // A sleep for a peer that notifies has the longest slice: a shorter one would
  // arm a hardware timer each time (measured: 15 us a wait instead of 2). For a
  // peer that does not notify, a sleep lasts no longer than the wait has
  // lasted, within these limits: such a peer's steps take at most twice as
  // long.
  static constexpr int64_t kShortestSleepNs = 50'000;
  static constexpr int64_t kLongestSleepNs = 10'000'000;

  int64_t SpinNs() {
    if (strategy_ == WaitStrategy::kSpin) return Deadline::Infinite().at_ns();
    return strategy_ == WaitStrategy::kAdaptive ? budget_.ForThisWait() : 0;
  }
  void Miss() {
    if (budget_.Miss() && Machine::MayMigrate()) budget_.TakeLoan();
  }
  // Learns from an answer that came while it spun; `yielded`: during a yield.
  void Hit(int64_t spun_ns, bool yielded) {
    if (strategy_ != WaitStrategy::kAdaptive) return;
    yielded_answers_ = yielded ? yielded_answers_ + 1 : 0;
    if (!yielded) budget_.Hit(spun_ns);
    if (yielded_answers_ >= kYieldedToThePeer) Miss();
  }
  template <typename Ready>
  ErrorCode LongUntil(Ready ready, Deadline deadline, WaitWatch& watch,
                      int64_t start, int64_t now, int64_t spin_ns);

  typename Machine::Bell bell_;
  WaitStrategy strategy_;
  typename Machine::Clock clock_;
  SpinBudget budget_;
  int yielded_answers_ = 0;    // that came during a yield, in a row
  bool peer_notifies_ = true;  // as the last sleep that ended well showed
  int64_t came_at_ns_ = 0;     // 0: unknown
  // Begin of the first of the waits that have timed out since the last answer,
  // sleep or IsRealTime; 0: none.
  int64_t unanswered_from_ns_ = 0;
};

using Waiter = BasicWaiter<WaitMachine>;

// ---------------------------------------------------------------------------

// Most waits end here, in a loop of polls and the clock alone: with the checks
// of LongUntil between two polls an answer is seen later (measured: 0.02 us
// each way on two threads of one core). The time of an answer is that before
// the poll: reading the clock after it would delay the next request.
template <typename Machine>
template <typename Ready>
ErrorCode BasicWaiter<Machine>::Until(Ready ready, Deadline deadline,
                                      WaitWatch& watch) {
  came_at_ns_ = 0;
  if (ready()) {
    unanswered_from_ns_ = 0;
    return ErrorCode::kOk;
  }
  if (deadline == Deadline::Now()) return ErrorCode::kStepTimeout;
  const int64_t start = clock_.Nanos();
  if (deadline.PassedAt(start)) {
    return ready() ? ErrorCode::kOk : ErrorCode::kStepTimeout;
  }
  const int64_t spin_ns = std::min(SpinNs(), deadline.at_ns() - start);
  const int64_t quick_ns = std::min(spin_ns, WaitWatch::kQuickNs);
  int64_t now = start;
  for (; now - start < quick_ns; now = clock_.Nanos()) {
    if (ready()) {
      Hit(now - start, /*yielded=*/false);
      came_at_ns_ = now;
      unanswered_from_ns_ = 0;
      return ErrorCode::kOk;
    }
  }
  return LongUntil(ready, deadline, watch, start, now, spin_ns);
}

// Spins on with pauses and yields, or sleeps.
template <typename Machine>
template <typename Ready>
[[gnu::noinline]] ErrorCode BasicWaiter<Machine>::LongUntil(
    Ready ready, Deadline deadline, WaitWatch& watch, int64_t start,
    int64_t now, int64_t spin_ns) {
  bool told = false;
  bool spinning = spin_ns > 0;
  bool yielded = false;
  bool slept = false;
  // To the scheduler, waits that time out one after the other are one spin.
  int64_t spun_from = std::exchange(unanswered_from_ns_, 0);
  if (spun_from == 0) spun_from = start;
  int64_t next_check = start + kFirstCheckNs;
  const bool yields = strategy_ == WaitStrategy::kAdaptive && budget_.IsLong();
  int64_t next_yield =
      yields ? start + kYieldEveryNs : Deadline::Infinite().at_ns();
  for (;;) {
    if (spinning) {
      const bool came = ready();
      spinning = now - start < spin_ns;
      if (came && spinning) {
        Hit(now - start, yielded);
      } else if (!spinning) {
        // Also if it came: this thread was away for longer than it may spin,
        // and a sleep would have been no later.
        Miss();
      }
      if (came) {
        came_at_ns_ = now;
        return ErrorCode::kOk;
      }
    }
    if (deadline.PassedAt(now)) {
      if (ready()) return ErrorCode::kOk;
      const bool only_spun = strategy_ == WaitStrategy::kSpin && !slept;
      if (only_spun) unanswered_from_ns_ = spun_from;
      return ErrorCode::kStepTimeout;
    }
    if (!std::exchange(told, true)) watch.OnLongWait();
    bool interrupted = false;
    bool notified = false;
    const bool yields_now = spinning && now >= next_yield;
    const int64_t polled_ns = now;
    if (yields_now) {
      Machine::Yield();
    } else if (spinning) {
      Machine::Pause();
    } else {
      slept = true;
      const int64_t slice =
          peer_notifies_
              ? kLongestSleepNs
              : std::clamp(now - start, kShortestSleepNs, kLongestSleepNs);
      const Doorbell::Wake wake = bell_.SleepUnless(
          ready, std::clamp<int64_t>(deadline.at_ns() - now, 0, slice));
      if (wake == Doorbell::Wake::kReady) return ErrorCode::kOk;
      if (ready()) {
        peer_notifies_ = wake == Doorbell::Wake::kNotified;
        if (spin_ns == 0) budget_.Slept(clock_.Nanos() - start);
        return ErrorCode::kOk;
      }
      interrupted = wake == Doorbell::Wake::kSignal;
      notified = wake == Doorbell::Wake::kNotified;
    }
    now = clock_.Nanos();
    if (yields_now) next_yield = now + kYieldEveryNs;
    yielded = yields_now && now - polled_ns > kYieldedNs;
    // A wake-up without an answer may be that of a peer that leaves.
    if (now >= next_check || interrupted || notified) {
      next_check = now + kCheckEveryNs;
      if (const ErrorCode code = watch.Check(now, interrupted);
          code != ErrorCode::kOk) {
        // What the peer stored before it left counts.
        return ready() ? ErrorCode::kOk : code;
      }
    }
    if (strategy_ == WaitStrategy::kSpin && spinning &&
        now - spun_from >= kRealTimeSpinNs) {
      spinning = !Machine::IsRealTime();
      spun_from = now;
    }
  }
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_WAITER_H_

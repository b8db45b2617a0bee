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

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "schema/layout/error_codes.h"
#include "transport/base/clock.h"
#include "transport/base/tick_clock.h"
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
  // Once, before the first sleep or after kQuickNs; before any Check.
  static constexpr int64_t kQuickNs = 20'000;
  virtual void Lasts() {}
  // kOk: wait on. Anything else ends the wait with that code, unless the
  // condition holds by then. `interrupted`: a signal handler has run.
  virtual ErrorCode Check(int64_t now_ns, bool interrupted) = 0;
};

// Not thread-safe. No call allocates. A spin makes no system call, but for a
// long adaptive one's sched_yield every 50 us, and one look at its thread's
// scheduling policy every kRealTimeSpinNs.
class Waiter {
 public:
  Waiter(Doorbell own_bell, WaitStrategy strategy)
      : bell_(own_bell), strategy_(strategy) {}

  // Waits until `ready()`. kOk: it holds. kStepTimeout: it did not by
  // `deadline` (Deadline::Now() looks once and makes no system call; any other
  // that has passed looks twice). Else what `watch` said.
  // `ready` runs many times, and not again once it was true; it must load with
  // acquire.
  template <typename Ready>
  ErrorCode Until(Ready ready, Deadline deadline, WaitWatch& watch);

  // When the last Until's condition came, by the waiter's clock: a look or two
  // early if that was while it spun. Else, after a sleep or if it held before,
  // now.
  int64_t CameAtNs() { return came_at_ns_ != 0 ? came_at_ns_ : clock_.Nanos(); }

  // The waiter's clock, a TickClock: never before what CameAtNs said.
  int64_t NowNs() { return clock_.Nanos(); }

 private:
  static constexpr int64_t kFirstCheckNs = 1'000'000;
  static constexpr int64_t kCheckEveryNs = 5'000'000;
  // A long spin offers its core to others so often: who computes little there,
  // such as a thread of this process that calls the engine, would have to wait
  // for it until the scheduler's next turn, milliseconds. Where nobody wants it
  // that takes 0.2 us, and more than kLentNs where somebody does.
  static constexpr int64_t kYieldEveryNs = 50'000;
  static constexpr int64_t kLentNs = 1'500;
  // So many answers in a row that came while it was lent are the peer's own
  // doing: he needs this core.
  static constexpr int kLentToThePeer = 4;
  // Not while the GIL may be held.
  static_assert(kYieldEveryNs > WaitWatch::kQuickNs);
  // A gap between two looks in which somebody had a turn: longer than what the
  // kernel or who computes little take. (Or the host took the virtual core;
  // that cannot be told apart.) In a wait that is quick it is none that a
  // shorter spin would have spared anybody.
  static constexpr int64_t kDisplacedNs = 1'000'000;
  // How long kSpin spins under SCHED_FIFO or SCHED_RR before it sleeps. Only
  // then the scheduler gives the core to a peer of the same or a lower
  // priority.
  static constexpr int64_t kRealTimeSpinNs = 10'000'000;
  // A sleep for a peer that rings has the longest slice: a shorter one would
  // arm a hardware timer each time (measured: 15 us a wait instead of 2). For a
  // peer that does not, it lasts no longer than the wait has lasted already,
  // within these, so that such a peer is at most twice as slow as its own work.
  static constexpr int64_t kShortestSleepNs = 50'000;
  static constexpr int64_t kLongestSleepNs = 10'000'000;

  int64_t SpinNs() {
    if (strategy_ == WaitStrategy::kSpin) return Deadline::Infinite().at_ns();
    return strategy_ == WaitStrategy::kAdaptive ? budget_.ForThisWait() : 0;
  }
  // Whether the calling thread keeps its core for as long as it runs.
  static bool KeepsItsCore() {
    const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR;
  }
  // Learns from an answer that came while it spun. `lent`: while its core was.
  void Learn(int64_t spun_ns, bool lent) {
    if (strategy_ != WaitStrategy::kAdaptive) return;
    lent_answers_ = lent ? lent_answers_ + 1 : 0;
    if (!lent) budget_.Paid(spun_ns);
    if (lent_answers_ >= kLentToThePeer) budget_.Failed();
  }
  template <typename Ready>
  ErrorCode LongUntil(Ready ready, Deadline deadline, WaitWatch& watch,
                      int64_t start, int64_t now, int64_t spin_ns);

  Doorbell bell_;
  WaitStrategy strategy_;
  TickClock clock_;
  SpinBudget budget_;
  int lent_answers_ = 0;    // that came while the core was lent, in a row
  bool peer_rings_ = true;  // as the last sleep that ended well showed
  int64_t came_at_ns_ = 0;  // 0: not known
  // When the first of the waits began that have timed out since the last
  // answer, sleep or look at the policy; 0: none has.
  int64_t unanswered_from_ns_ = 0;
};

// ---------------------------------------------------------------------------

// Most waits end here, in a loop of nothing but looks and the clock: with what
// LongUntil asks between two of them an answer is seen later (measured: 0.02 us
// each way on two threads of one core). Who needs the time when it came need
// not read it then, while the peer waits for him.
template <typename Ready>
ErrorCode Waiter::Until(Ready ready, Deadline deadline, WaitWatch& watch) {
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
      Learn(now - start, /*lent=*/false);
      came_at_ns_ = now;
      unanswered_from_ns_ = 0;
      return ErrorCode::kOk;
    }
  }
  return LongUntil(ready, deadline, watch, start, now, spin_ns);
}

// Spins on and relaxes, or sleeps.
template <typename Ready>
[[gnu::noinline]] ErrorCode Waiter::LongUntil(Ready ready, Deadline deadline,
                                              WaitWatch& watch, int64_t start,
                                              int64_t now, int64_t spin_ns) {
  bool told = false;
  bool spinning = spin_ns > 0;
  bool lent = false;
  bool slept = false;
  // To the scheduler, waits that time out one after the other are one spin.
  int64_t spun_from = std::exchange(unanswered_from_ns_, 0);
  if (spun_from == 0) spun_from = start;
  int64_t next_check = start + kFirstCheckNs;
  // Its own turn may be long in coming, and the deadline sooner.
  const bool offers = strategy_ == WaitStrategy::kAdaptive &&
                      budget_.IsLong() &&
                      deadline.at_ns() - start > SpinBudget::kMostSavingsNs;
  int64_t next_yield =
      offers ? start + kYieldEveryNs : Deadline::Infinite().at_ns();
  for (;;) {
    if (spinning) {
      const bool came = ready();
      spinning = now - start < spin_ns;
      if (came && spinning) {
        Learn(now - start, lent);
      } else if (!spinning && spin_ns > SpinBudget::kFreeNs) {
        // Also if it came: away for longer than it may spin, where a sleep
        // would have been no later.
        budget_.Failed();
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
    if (!told) {
      told = true;
      watch.Lasts();
      now = clock_.Nanos();  // that was no loss of the core
    }
    bool interrupted = false;
    bool rung = false;
    const int64_t looked_ns = now;
    const bool yields = spinning && now >= next_yield;
    if (yields) {
      sched_yield();
    } else if (spinning) {
      Relax();
    } else {
      slept = true;
      const int64_t slice =
          peer_rings_
              ? kLongestSleepNs
              : std::clamp(now - start, kShortestSleepNs, kLongestSleepNs);
      const Doorbell::Wake wake = bell_.SleepUnless(
          ready, std::clamp<int64_t>(deadline.at_ns() - now, 0, slice));
      if (wake == Doorbell::Wake::kReady) return ErrorCode::kOk;
      if (ready()) {
        peer_rings_ = wake == Doorbell::Wake::kRung;
        if (spin_ns == 0) budget_.Slept(clock_.Nanos() - start);
        return ErrorCode::kOk;
      }
      interrupted = wake == Doorbell::Wake::kSignal;
      rung = wake == Doorbell::Wake::kRung;
    }
    now = clock_.Nanos();
    if (yields) next_yield = now + kYieldEveryNs;
    lent = yields && now - looked_ns > kLentNs;
    if (spinning && now - looked_ns > kDisplacedNs) budget_.Displaced();
    // A ring that brought no answer: the peer has left, perhaps.
    if (now >= next_check || interrupted || rung) {
      next_check = now + kCheckEveryNs;
      if (const ErrorCode code = watch.Check(now, interrupted);
          code != ErrorCode::kOk) {
        // What the peer did last counts, if it did it before it left.
        return ready() ? ErrorCode::kOk : code;
      }
      now = clock_.Nanos();  // as above
    }
    if (strategy_ == WaitStrategy::kSpin && spinning &&
        now - spun_from >= kRealTimeSpinNs) {
      spinning = !KeepsItsCore();
      spun_from = now;
    }
  }
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_WAITER_H_

// Waiter: waits until a condition on shared words holds, by spinning, sleeping
// or both, with a deadline and a check of the peer.
//
// Data flow: condition <- words that the peer stores; bell <- the peer
// notifies. Ownership: one Waiter for each thread that waits; it learns from
// its waits. docs/waiting.md explains the algorithm.
// Length: the rules of a wait act on one loop, which is read as a whole.
//
//   Waiter waiter(Doorbell(...), WaitStrategy::kAdaptive);
//   ErrorCode code = waiter.Until(
//       [&] { return seq.load(std::memory_order_acquire) == wanted; },
//       Deadline::After(10), watch);

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/os/machine.h"
#include "base/os/tick_clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/shared_word.h"
#include "transport/wait/core_sharing.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/forecast.h"
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
  // Puts the calling thread on one core while it exists.
  using Placement = OnCore;
};

// Not thread-safe. No call allocates. A spin makes no system call, except for
// a long adaptive one's sched_yield every 50 us, sched_getscheduler every 10 ms
// of a kSpin one, and sched_getaffinity before a loan. A sleep makes one, and
// four more on a shared core.
template <typename Machine>
class BasicWaiter {
 public:
  BasicWaiter(typename Machine::Bell own_bell, WaitStrategy strategy)
      : bell_(own_bell), strategy_(strategy) {}

  // Waits until `ready()`. kOk: it holds. kStepTimeout: it did not by
  // `deadline` (Deadline::Now() polls once and makes no system call; any other
  // that has passed polls twice). Else what `watch` returned.
  // `ready` runs many times, and not again once it was true; it must load with
  // acquire. `own_core`, if not negative: the caller's core, on which the peer
  // computes the answer. Then an adaptive wait sleeps at once, on that core,
  // and learns nothing.
  template <typename Ready>
  ErrorCode Until(Ready ready, Deadline deadline, WaitWatch& watch,
                  int own_core = -1);

  // From now on sleeps between two slow requests on the core that `peer_core`
  // names, and names it in `own_core` meanwhile (CoreSharing). Not with kSpin.
  void ShareCore(const SharedWord<uint32_t>* peer_core,
                 SharedWord<uint32_t>* own_core) {
    if (strategy_ != WaitStrategy::kSpin) sharing_.Share(peer_core, own_core);
  }
  // From now on an adaptive wait polls shortly before a slow request that it
  // forecasts (Forecast); after ShareCore. Counts in the words how often it
  // polled, and how often the request came meanwhile. Both outlive this object.
  void WakeEarly(SharedWord<uint64_t>* wakes, SharedWord<uint64_t>* hits) {
    if (strategy_ != WaitStrategy::kAdaptive) return;
    early_wakes_ = wakes;
    early_hits_ = hits;
  }

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
    if (sharing_.Shares()) return 0;
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
                      int64_t start, int64_t now, int64_t spin_ns,
                      int own_core);
  // Polls from the end of a nap on. Returns whether the condition came.
  template <typename Ready>
  bool Polled(Ready ready, const Forecast::Nap& nap, int64_t start,
              Deadline deadline);
  // Sleeps once, on this core if the thread may; -1: on any.
  template <typename Ready>
  Doorbell::Wake Sleep(Ready ready, int64_t slice_ns, int core);
  // A wait has ended with what it waited for.
  void Answered(int64_t start, int64_t now, bool slept) {
    if (sharing_.on()) forecast_.Waited(now - start);
    if (sharing_.Waited(now - start, slept, now)) budget_.ProbeNext();
  }

  typename Machine::Bell bell_;
  WaitStrategy strategy_;
  typename Machine::Clock clock_;
  SpinBudget budget_;
  int yielded_answers_ = 0;    // that came during a yield, in a row
  bool peer_notifies_ = true;  // as the last sleep that ended well showed
  int64_t came_at_ns_ = 0;     // 0: unknown
  CoreSharing sharing_;
  Forecast forecast_;
  SharedWord<uint64_t>* early_wakes_ = nullptr;  // null: does not wake early
  SharedWord<uint64_t>* early_hits_ = nullptr;
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
                                      WaitWatch& watch, int own_core) {
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
  const int64_t spin_ns = own_core >= 0 && strategy_ != WaitStrategy::kSpin
                              ? 0
                              : std::min(SpinNs(), deadline.at_ns() - start);
  const int64_t quick_ns = std::min(spin_ns, WaitWatch::kQuickNs);
  int64_t now = start;
  for (; now - start < quick_ns; now = clock_.Nanos()) {
    if (ready()) {
      Hit(now - start, /*yielded=*/false);
      if (!sharing_.IsIdle()) Answered(start, now, /*slept=*/false);
      came_at_ns_ = now;
      unanswered_from_ns_ = 0;
      return ErrorCode::kOk;
    }
  }
  return LongUntil(ready, deadline, watch, start, now, spin_ns, own_core);
}

template <typename Machine>
template <typename Ready>
Doorbell::Wake BasicWaiter<Machine>::Sleep(Ready ready, int64_t slice_ns,
                                           int core) {
  // While this thread is limited to the peer's core it says so, also before and
  // after the sleep: it then runs only if the peer sleeps.
  sharing_.Tell(core);
  if (core >= 0 && ready()) {  // the peer may have asked before it saw the word
    sharing_.Tell(-1);
    return Doorbell::Wake::kReady;
  }
  Doorbell::Wake wake;
  {
    const typename Machine::Placement placed(core);
    if (placed.core() != core) sharing_.Tell(-1);
    wake = bell_.SleepUnless(ready, slice_ns);
  }
  sharing_.Tell(-1);
  return wake;
}

template <typename Machine>
template <typename Ready>
bool BasicWaiter<Machine>::Polled(Ready ready, const Forecast::Nap& nap,
                                  int64_t start, Deadline deadline) {
  // relaxed: counters, for display.
  early_wakes_->fetch_add(1, std::memory_order_relaxed);
  int64_t now = clock_.Nanos();
  forecast_.Woke(now - start - nap.sleep_ns);
  const int64_t until_ns =
      std::min(deadline.at_ns(), start + nap.polls_until_ns);
  do {
    if (ready()) {
      // relaxed: as above.
      early_hits_->fetch_add(1, std::memory_order_relaxed);
      forecast_.Hit();
      Answered(start, now, /*slept=*/true);
      came_at_ns_ = now;
      return true;
    }
    now = clock_.Nanos();
  } while (now < until_ns);
  if (now >= start + nap.polls_until_ns) forecast_.Miss();
  return false;
}

// Spins on with pauses and yields, or sleeps.
template <typename Machine>
template <typename Ready>
[[gnu::noinline]] ErrorCode BasicWaiter<Machine>::LongUntil(
    Ready ready, Deadline deadline, WaitWatch& watch, int64_t start,
    int64_t now, int64_t spin_ns, int own_core) {
  bool told = false;
  bool spinning = spin_ns > 0;
  bool yielded = false;
  bool slept = false;
  // To the scheduler, waits that time out one after the other are one spin.
  int64_t spun_from = std::exchange(unanswered_from_ns_, 0);
  if (spun_from == 0) spun_from = start;
  int64_t next_check = start + kFirstCheckNs;
  Forecast::Nap nap;
  if (early_wakes_ != nullptr && sharing_.on()) nap = forecast_.ForThisWait();
  int first_core = own_core;
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
        Answered(start, now, /*slept=*/false);
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
      if (nap.sleep_ns != 0 && now - start >= nap.sleep_ns) {
        if (Polled(ready, nap, start, deadline)) return ErrorCode::kOk;
        nap = {};
        now = clock_.Nanos();
      }
      const bool naps = nap.sleep_ns != 0;
      int64_t slice_ns = kLongestSleepNs;
      if (naps) {
        slice_ns = std::min(slice_ns, start + nap.sleep_ns - now);
      } else if (!peer_notifies_) {
        slice_ns = std::clamp(now - start, kShortestSleepNs, kLongestSleepNs);
      }
      const int core = std::exchange(first_core, -1);
      const Doorbell::Wake wake =
          Sleep(ready, std::clamp<int64_t>(deadline.at_ns() - now, 0, slice_ns),
                naps || core >= 0 ? core : sharing_.CoreAt(now));
      if (wake == Doorbell::Wake::kReady) {
        Answered(start, clock_.Nanos(), /*slept=*/false);
        return ErrorCode::kOk;
      }
      if (ready()) {
        now = clock_.Nanos();
        if (naps) {  // its bell may ring just after the nap's end
          const int64_t late_ns = now - start - nap.sleep_ns;
          if (late_ns > 0) forecast_.Woke(late_ns);
          forecast_.Miss();
        } else {
          peer_notifies_ = wake == Doorbell::Wake::kNotified;
        }
        if (spin_ns == 0 && own_core < 0 && !sharing_.Shares()) {
          budget_.Slept(now - start);
        }
        Answered(start, now, /*slept=*/true);
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

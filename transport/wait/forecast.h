// Forecast: when a peer that asks at regular intervals will ask again.
//
// Data flow: lengths of past waits -> when to wake before the next request.
// docs/waiting.md gives the reasons and the measurements.
//
// The peer does not wait for a wake-up that comes before its request. So a wait
// sleeps by a timer until shortly before the forecast, then polls until shortly
// after it. The estimates are those of TCP's retransmission timer (RFC 6298): a
// mean, and a mean deviation. A forecast that fails is a miss of a SpinBudget,
// which then allows few.
//
//   const Forecast::Nap nap = forecast.ForThisWait();
//   nap.sleep_ns > 0: sleep so long, then forecast.Woke(late_ns), and poll;
//   then forecast.Hit(), or forecast.Miss() and sleep on. A request during the
//   sleep is a miss, too. In the end forecast.Waited(length_ns).

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "transport/wait/spin_budget.h"

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call.
class Forecast {
 public:
  // Both from the wait's begin; 0: there is no forecast, sleep until woken.
  struct Nap {
    int64_t sleep_ns = 0;
    int64_t polls_until_ns = 0;
  };
  // The longest poll: one part of so many of a wait, and kMostPolledNs.
  static constexpr int64_t kParts = 5;
  static constexpr int64_t kMostPolledNs = SpinBudget::kLongestNs;
  static constexpr int64_t kMarginNs = 5'000;
  static constexpr int64_t kLeastOutlierNs = 1'000'000;

  Nap ForThisWait() {
    const int64_t after = 2 * deviation_ns_ + kMarginNs;
    const int64_t before = late_ns_ + after;
    if (before + after > std::min(mean_ns_ / kParts, kMostPolledNs)) {
      late_ns_ -= late_ns_ / 64;  // until it is tried again
      return {};
    }
    if (budget_.ForThisWait() == 0) return {};
    return {.sleep_ns = mean_ns_ - before, .polls_until_ns = mean_ns_ + after};
  }

  // The timer woke the thread so long after the time that was asked for.
  void Woke(int64_t late_ns) {
    late_ns = std::min(late_ns, mean_ns_);  // a process may have been frozen
    // Quick to grow: a wake after the request costs more than polls before it.
    late_ns_ += (late_ns - late_ns_) / (late_ns > late_ns_ ? 2 : 16);
  }
  void Hit() { budget_.Hit(0); }
  void Miss() { budget_.Miss(); }

  void Waited(int64_t length_ns) {
    // A trainer that learns between many steps is away once for long.
    length_ns = std::min(length_ns, 2 * mean_ns_ + kLeastOutlierNs);
    deviation_ns_ += (std::abs(length_ns - mean_ns_) - deviation_ns_) / 4;
    mean_ns_ += (length_ns - mean_ns_) / 8;
  }

 private:
  SpinBudget budget_;
  int64_t mean_ns_ = 0;
  int64_t deviation_ns_ = 0;
  // Of the timer and the wake-up. At first as long as Linux lets timers be
  // late.
  int64_t late_ns_ = 50'000;
};

}  // namespace tandem

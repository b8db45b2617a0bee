// SpinBudget: how long the adaptive strategy spins before it sleeps.
//
// Data flow: outcomes of past waits -> nanoseconds to spin in the next wait.
// docs/waiting.md gives the reasons and the measurements.
//
// A wait spins for as long as sleeps have lasted, plus the saving. An answer
// that comes sooner than a sleep would have brought it adds the difference to
// the saving. So all waits together take at most twice what sleeping takes.
//
//  state     a wait                               left when
//  spins     spins; after kLongWaitsToSleep long  kMissesToSleep misses in a
//            waits in a row, one sleeps           row: sleeps
//  sleeps    sleeps at once; one in 16 to 1024    a probe is a hit, or a loan
//            is a probe, which spins first        was taken: spins
//
//   SpinBudget budget;
//   const int64_t spin_ns = budget.ForThisWait();
//   0: sleep, then budget.Slept(waited_ns). Else spin, then
//   budget.Hit(waited_ns), or budget.Miss() and sleep.

#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call.
class SpinBudget {
 public:
  // A longer spin costs more CPU time than it saves latency: a wake takes about
  // 1 us on a busy core, and 25 to 100 us on an idle one of a virtual machine.
  static constexpr int64_t kLongestNs = 500'000;
  // Sleeps are not measured as shorter than this, so that a spin lasts for two
  // sides that run.
  static constexpr int64_t kShortestNs = 4'000;
  // How long a preempted peer is away: 3 to 16 ms were measured.
  static constexpr int64_t kMostSavingNs = 16'000'000;
  // Two sides on one core, of which each sleeps in turn, stay there: the
  // scheduler sees one runnable process. Two that spin are two, and it migrates
  // one after 79 to 117 ms (measured). A loan lasts for that.
  static constexpr int64_t kLoanNs = 200'000'000;
  // Time asleep between two loans: they cost at most a fifth.
  static constexpr int64_t kSleptPerLoanNs = 4 * kLoanNs;
  // Where a sleep lasts longer, two sides on one core step faster than two that
  // share their cores with a busy process, each of which is preempted in turn.
  static constexpr int64_t kLoanedSleepNs = 2'500;

  SpinBudget() : SpinBudget(kLongestNs, kMostSavingNs) {}
  // No wait spins for more than `longest_ns` + `most_saving_ns`.
  SpinBudget(int64_t longest_ns, int64_t most_saving_ns)
      : longest_ns_(longest_ns),
        most_saving_ns_(most_saving_ns),
        sleep_ns_(longest_ns) {}

  // Nanoseconds to spin now; 0: sleep at once.
  int64_t ForThisWait() {
    if (spins_) {
      if (long_waits_ < kLongWaitsToSleep) {
        return SleepNs() + std::min(saving_ns_, kMostSavingNs);
      }
      long_waits_ = 0;
      return 0;
    }
    if (waits_to_probe_ > 1) {
      --waits_to_probe_;
      return 0;
    }
    return SleepNs();  // until Hit or Miss ends the probe
  }

  // Whether answers take long: the core of such a spin is of use to others.
  bool IsLong() const { return long_waits_ > 1; }

  // The condition came true after `spun_ns` of spinning.
  void Hit(int64_t spun_ns) {
    spins_ = true;
    misses_ = 0;
    probe_interval_ = kFirstProbeInterval;
    // Stops at the limit: a counter that is never reset does not wrap.
    long_waits_ =
        spun_ns > kLongNs ? std::min(long_waits_ + 1, kLongWaitsToSleep) : 0;
    // A loan is more than the greatest saving, and is only spent.
    const int64_t most = std::max(saving_ns_, most_saving_ns_);
    saving_ns_ = std::clamp<int64_t>(saving_ns_ + sleep_ns_ - spun_ns, 0, most);
  }

  // It did not while the wait spun. Returns whether a loan is due.
  bool Miss() {
    saving_ns_ = 0;
    if (spins_) {
      if (++misses_ < kMissesToSleep) return false;
      spins_ = false;
      misses_ = 0;
      waits_to_probe_ = probe_interval_;
      return false;
    }
    probe_interval_ = std::min(2 * probe_interval_, kLastProbeInterval);
    waits_to_probe_ = probe_interval_;
    return sleep_ns_ < kLoanedSleepNs && slept_ns_ >= kSleptPerLoanNs;
  }

  // The next wait spins first, as a probe.
  void ProbeNext() { waits_to_probe_ = 1; }

  // Spins on the saving from the next wait on, after a Miss that returned true.
  void TakeLoan() {
    slept_ns_ = 0;
    saving_ns_ = kLoanNs;
    spins_ = true;
  }

  // A wait that slept at once got its answer `waited_ns` after its begin.
  void Slept(int64_t waited_ns) {
    // A single wait of many milliseconds, such as one for a trainer that
    // learns, counts for two of the longest spins.
    sleep_ns_ += (std::min(waited_ns, 2 * longest_ns_) - sleep_ns_) / 4;
    sleep_ns_ = std::min(sleep_ns_, longest_ns_);
    slept_ns_ = std::min(slept_ns_ + waited_ns, kSleptPerLoanNs);
  }

 private:
  static constexpr int kMissesToSleep = 2;
  static constexpr int kFirstProbeInterval = 16;
  static constexpr int kLastProbeInterval = 1024;  // at most 0.5 us a wait
  // A quick peer never has such a wait, and a slow peer's steps in fewer than
  // one of a hundred.
  static constexpr int64_t kLongNs = 25'000;
  static constexpr int kLongWaitsToSleep = 256;

  int64_t SleepNs() const { return std::max(sleep_ns_, kShortestNs); }

  int64_t longest_ns_;
  int64_t most_saving_ns_;
  bool spins_ = true;
  int64_t sleep_ns_;  // mean length of the last waits that slept at once
  int64_t saving_ns_ = 0;
  int64_t slept_ns_ = kSleptPerLoanNs;  // since the last loan
  int long_waits_ = 0;                  // in a row
  int misses_ = 0;                      // in a row
  int probe_interval_ = kFirstProbeInterval;
  int waits_to_probe_ = 0;
};

}  // namespace tandem

// SpinBudget: how long the adaptive strategy spins before it sleeps.
//
// Data flow: outcomes of past waits -> nanoseconds to spin in the next.
// Spinning pays when the answer comes while we spin. When it does not (a slow
// peer, or one that needs the very core we spin on) the budget shrinks to zero
// within a few waits, and only a rare probe asks whether that has changed.
//
// What a sleep takes differs by the machine, the peer and what else runs. So
// long waits sleep now and then though spinning pays, and no spin is longer
// than such waits have lasted.
//
// Who loses the core while he spins, for longer than an interrupt takes, and
// soon again, keeps somebody from it: then long spins end early for a while.
//
// Quick answers also earn savings, from which a single late one is waited for:
// a quick peer that is late has lost its core to somebody else for a while. To
// sleep then would cost more than the wake: the scheduler would put both sides
// on one core, where no spinning pays any more.
//
// Where they are on one core nevertheless, sleeping brings the answer in less
// time than spinning waits for it in vain. There a wait spins on, for so long
// as a scheduler takes to see two that run on one core, and to part them.
//
// So short a spin as kFreeNs is not counted: it costs no more than asking the
// kernel for a sleep does.
//
//   SpinBudget budget;
//   int64_t spin_ns = budget.ForThisWait();
//   ... if it came in time: budget.Paid(waited_ns); else: budget.Failed(),
//   and, if it came after a sleep: budget.Slept(waited_ns);

#ifndef TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_
#define TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call.
class SpinBudget {
 public:
  // A core's worth of electricity and of others' time is not given for more:
  // waking a sleeper costs 2 to 4 us on a core that runs, 30 to 60 on an idle
  // one of a virtual machine, and of a longer step that is little.
  static constexpr int64_t kLongestNs = 200'000;
  static constexpr int64_t kLongestOnWantedCoreNs = 50'000;
  static constexpr int64_t kShortestNs = 4'000;
  static constexpr int64_t kFreeNs = 2'000;
  // What a scheduler gives others before a process has its turn again: 3 to 16
  // ms were seen.
  static constexpr int64_t kMostSavingsNs = 16'000'000;
  // On a core that both share a sleep lasts as long as the peer's own work and
  // two switches: 5 to 8 us were seen with next to no work, 28 with 17 of it.
  static constexpr int64_t kSharedCoreNs = 50'000;
  // What Linux takes to part two processes on a core, beside one that is busy:
  // 79 to 117 ms were seen; at times an attempt fails.
  static constexpr int64_t kPartingNs = 500'000'000;

  // Nanoseconds to spin now; 0: sleep at once.
  int64_t ForThisWait() {
    if (displaced_ > 0) --displaced_;
    const int64_t spin_ns = Choose();
    only_sleeps_ = spin_ns == 0;
    return spin_ns;
  }

  // The condition came true after `spun_ns` of spinning.
  void Paid(int64_t spun_ns) {
    const int64_t waited_ns = std::max<int64_t>(spun_ns - kFreeNs, 0);
    if (parting_ns_ > 0) NoteParting(waited_ns);
    long_waits_ = waited_ns > kLongNs ? long_waits_ + 1 : 0;
    const int64_t before_ns = budget_ns_;
    budget_ns_ = std::max(budget_ns_ - budget_ns_ / 64, 2 * waited_ns);
    budget_ns_ = std::clamp(budget_ns_, kShortestNs, Longest());
    // Earned: what it took less than a sleep; spent: what it took more, and by
    // what the budget grew.
    const int64_t allowed = std::max(kShortestNs, before_ns);
    if (waited_ns < kShortestNs || waited_ns > allowed) {
      const int64_t grown_ns = std::max<int64_t>(budget_ns_ - allowed, 0);
      savings_ns_ = std::clamp<int64_t>(
          savings_ns_ + allowed - waited_ns - grown_ns, 0, kMostSavingsNs);
    }
    probe_interval_ = kFirstProbeInterval;
    failures_ = 0;
  }

  // It did not while we spun.
  void Failed() {
    savings_ns_ = 0;
    if (parting_ns_ > 0) GiveUpParting();
    if (budget_ns_ == 0) {  // a probe
      probe_interval_ = std::min(2 * probe_interval_, kLastProbeInterval);
      waits_to_probe_ = probe_interval_;
      if (quick_sleeps_ >= kFirstProbeInterval / 2 &&
          --probes_to_parting_ <= 0) {
        parting_ns_ = kPartingNs;
        quick_answers_ = 0;
      }
      quick_sleeps_ = 0;
      return;
    }
    // A single one says little.
    budget_ns_ -= budget_ns_ * std::min(++failures_, 7) / 8;
    if (budget_ns_ < kShortestNs) {
      budget_ns_ = 0;
      waits_to_probe_ = probe_interval_;
    }
  }

  // It came after a sleep, `waited_ns` after the wait's begin.
  void Slept(int64_t waited_ns) {
    if (only_sleeps_) {
      longest_ns_ += (std::min(waited_ns, 2 * kLongestNs) - longest_ns_) / 4;
      longest_ns_ = std::clamp(longest_ns_, kShortestNs, kLongestNs);
      budget_ns_ = std::min(budget_ns_, Longest());
    }
    quick_sleeps_ = waited_ns < kSharedCoreNs ? quick_sleeps_ + 1 : 0;
  }

  // It lost its core for a while as it spun.
  void Displaced() {
    displaced_ = std::min(displaced_ + kDisplacedWaits, kMostDisplacedWaits);
    budget_ns_ = std::min(budget_ns_, Longest());
  }

 private:
  static constexpr int kFirstProbeInterval = 16;
  static constexpr int kLastProbeInterval = 1024;
  // After so many waits that were longer, one after the other, one sleeps.
  static constexpr int64_t kLongNs = 25'000;
  static constexpr int kLongWaitsToSleep = 64;
  // What a loss of the core counts for: a second one within so many waits
  // shows that somebody wants it; many, that it will go on.
  static constexpr int kDisplacedWaits = 64;
  static constexpr int kMostDisplacedWaits = 2048;
  // So many quick answers, one after the other, come from no shared core.
  static constexpr int kAnswersApart = 64;
  // In probes: a second or two, and some minutes.
  static constexpr int kFirstPartingInterval = 256;
  static constexpr int kLastPartingInterval = 1 << 16;

  int64_t Longest() const {
    return displaced_ > kDisplacedWaits
               ? std::min(longest_ns_, kLongestOnWantedCoreNs)
               : longest_ns_;
  }

  int64_t Choose() {
    if (parting_ns_ > 0) return kFreeNs + parting_ns_;
    if (budget_ns_ > 0) {
      if (long_waits_ < kLongWaitsToSleep) {
        return kFreeNs + budget_ns_ + savings_ns_;
      }
      long_waits_ = 0;
      return 0;
    }
    if (waits_to_probe_ > 1) {
      --waits_to_probe_;
      return 0;
    }
    // Until Paid or Failed tells its outcome.
    return kFreeNs + std::min(2 * Longest(), kLongestNs);
  }

  // While it waits to be parted: an answer came.
  void NoteParting(int64_t waited_ns) {
    quick_answers_ = waited_ns < kShortestNs ? quick_answers_ + 1 : 0;
    if (quick_answers_ == kAnswersApart) {  // they run at the same time
      parting_ns_ = 0;
      longest_ns_ = kLongestNs;
      parting_interval_ = kFirstPartingInterval;
      probes_to_parting_ = 0;
      return;
    }
    parting_ns_ -= waited_ns;
    if (parting_ns_ <= 0) GiveUpParting();
  }

  void GiveUpParting() {
    parting_ns_ = 0;
    probes_to_parting_ = parting_interval_;
    parting_interval_ = std::min(2 * parting_interval_, kLastPartingInterval);
  }

  int64_t budget_ns_ = kLongestNs;
  int64_t savings_ns_ = 0;
  int64_t longest_ns_ = kLongestNs;  // what waits that slept at once have taken
  int displaced_ = 0;                // waits for which that counts
  bool only_sleeps_ = false;         // this wait
  int long_waits_ = 0;               // one after the other
  int failures_ = 0;                 // one after the other
  int probe_interval_ = kFirstProbeInterval;
  int waits_to_probe_ = 0;
  int quick_sleeps_ = 0;    // one after the other, since the last probe
  int64_t parting_ns_ = 0;  // left to spin until the scheduler parts the sides
  int quick_answers_ = 0;   // one after the other, meanwhile
  int probes_to_parting_ =
      0;  // counts those alone before which sleeps are quick
  int parting_interval_ = kFirstPartingInterval;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_

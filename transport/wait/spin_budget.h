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
// Who loses the core to somebody for a turn while he spins, and soon again,
// keeps him from it: then long spins end early for a while.
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
//  state     known by          a wait                left when
//  spins     budget_ns_ > 0    spins, then sleeps;   in vain a few times in a
//                              some sleep at once    row: sleeps
//  sleeps    budget_ns_ == 0   sleeps at once;       a probe pays: spins; is in
//                              some are probes       vain on one core: parts
//  parts     parting_ns_ > 0   spins                 quick answers or time is
//                                                    up: spins or sleeps
//
//   SpinBudget budget;
//   const int64_t spin_ns = budget.ForThisWait();
//   0: sleep, then budget.Slept(waited_ns); else spin, then
//   budget.Paid(waited_ns), or budget.Failed() once it has spun for that long
//   or up to its deadline, and sleep; budget.Displaced() at any time meanwhile.

#ifndef TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_
#define TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace tandem {

// Not thread-safe; no call blocks, allocates or makes a system call.
class SpinBudget {
 public:
  // A core's worth of electricity and of others' time is not given for more:
  // waking a sleeper costs 2 to 4 us on a core that runs, 30 to 100 on an idle
  // one of a virtual machine, and of a longer step that is little.
  static constexpr int64_t kLongestNs = 500'000;
  // No more than a wake takes, where somebody else pays for it. No less than
  // kSharedCoreNs: a probe spins for as long as sleeps take there.
  static constexpr int64_t kLongestOnWantedCoreNs = 50'000;
  // Two sides that run need less between themselves; no wake does.
  static constexpr int64_t kShortestNs = 4'000;
  static constexpr int64_t kFreeNs = 2'000;
  // What a scheduler gives others before a process has its turn again: 3 to 16
  // ms were seen.
  static constexpr int64_t kMostSavingsNs = 16'000'000;
  // On a core that both share a sleep lasts as long as the peer's own work and
  // two switches: 5 to 8 us were seen with next to no work, 28 with 17 of it.
  static constexpr int64_t kSharedCoreNs = 50'000;
  // What Linux takes to part two processes on a core, beside one that is busy:
  // 79 to 117 ms were seen; 200 were not enough in 2 of 24 attempts, 600 in
  // all of them.
  static constexpr int64_t kPartingNs = 600'000'000;

  SpinBudget() : SpinBudget(kLongestNs, true) {}
  // Spins for `longest_ns` at most. `learns`: the owner calls Slept; otherwise
  // no wait sleeps for the sake of that, and none spins to be parted.
  SpinBudget(int64_t longest_ns, bool learns)
      : longest_ns_(longest_ns),
        learns_(learns),
        budget_ns_(longest_ns),
        sleep_takes_ns_(longest_ns) {}

  // Nanoseconds to spin now; 0: sleep at once.
  int64_t ForThisWait() {
    if (displaced_ > 0) --displaced_;
    if (parting_ns_ > 0) {
      return kFreeNs + std::min(parting_ns_, kMostSavingsNs);
    }
    if (budget_ns_ > 0) {
      if (long_waits_ < kLongWaitsToSleep || !learns_) {
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
    return kFreeNs + std::min(2 * sleep_takes_ns_, Limit());
  }

  // Whether spins are long because answers are: not to be parted, nor for one
  // that is late, which last until whoever took the peer's core is done.
  bool IsLong() const { return parting_ns_ <= 0 && long_waits_ > 1; }

  // The condition came true after `spun_ns` of spinning.
  void Paid(int64_t spun_ns) {
    const int64_t waited_ns = std::max<int64_t>(spun_ns - kFreeNs, 0);
    if (parting_ns_ > 0) {
      NoteParting(waited_ns);
    } else if (budget_ns_ == 0 && waited_ns > sleep_takes_ns_) {
      PutOffProbe();  // a sleep would have brought it as soon
      return;
    }
    // Up to what is wanted: a count that nobody resets ends there.
    long_waits_ =
        waited_ns > kLongNs ? std::min(long_waits_ + 1, kLongWaitsToSleep) : 0;
    const int64_t allowed = std::max(kShortestNs, budget_ns_);
    budget_ns_ = std::max(budget_ns_ - budget_ns_ / 64, 2 * waited_ns);
    budget_ns_ = std::clamp(budget_ns_, kShortestNs, Longest());
    // Earned: what it took less than it might; spent: what it took more, and by
    // what the budget grew.
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
    const bool parting = parting_ns_ > 0;
    if (parting) GiveUpParting();
    if (budget_ns_ == 0) {  // a probe
      PutOffProbe();
      if (learns_ && !parting && sleep_takes_ns_ < kSharedCoreNs &&
          --probes_to_parting_ <= 0) {
        parting_ns_ = kPartingNs;
        quick_answers_ = 0;
      }
      return;
    }
    // A single one says little.
    budget_ns_ -= budget_ns_ * ++failures_ / 8;
    if (budget_ns_ < kShortestNs) {
      budget_ns_ = 0;
      waits_to_probe_ = probe_interval_;
    }
  }

  // A wait that slept at once got its answer, `waited_ns` after its begin.
  void Slept(int64_t waited_ns) {
    // A single one of many milliseconds, while the trainer learns, say, does
    // not count for all that.
    sleep_takes_ns_ +=
        (std::min(waited_ns, 2 * longest_ns_) - sleep_takes_ns_) / 4;
    sleep_takes_ns_ = std::clamp(sleep_takes_ns_, kShortestNs, longest_ns_);
    budget_ns_ = std::min(budget_ns_, Longest());
  }

  // Somebody had the core for a turn while it spun.
  void Displaced() {
    displaced_ = std::min(displaced_ + kDisplacedWaits, kMostDisplacedWaits);
    budget_ns_ = std::min(budget_ns_, Longest());
  }

 private:
  static constexpr int kFirstProbeInterval = 16;
  static constexpr int kLastProbeInterval = 1024;  // 0.2 us a wait, at most
  // After so many waits that were longer, one after the other, one sleeps: a
  // quick peer's never does, and of a slow one's steps less than a hundredth
  // have such a wait on either side.
  static constexpr int64_t kLongNs = 25'000;
  static constexpr int kLongWaitsToSleep = 256;
  // What a loss of the core counts for: a second one within so many waits
  // shows that somebody wants it; many, that it will go on.
  static constexpr int kDisplacedWaits = 64;
  static constexpr int kMostDisplacedWaits = 2048;
  // So many quick answers, one after the other, come from no shared core: that
  // take no longer than a sleep there without its switches, 5 to 11 us.
  static constexpr int64_t kTwoSwitchesNs = 8'000;
  static constexpr int kAnswersApart = 64;
  // In probes.
  static constexpr int kFirstPartingInterval = 256;
  static constexpr int kLastPartingInterval = 1 << 16;

  int64_t Limit() const {
    return displaced_ > kDisplacedWaits
               ? std::min(longest_ns_, kLongestOnWantedCoreNs)
               : longest_ns_;
  }
  int64_t Longest() const { return std::min(sleep_takes_ns_, Limit()); }

  void PutOffProbe() {
    probe_interval_ = std::min(2 * probe_interval_, kLastProbeInterval);
    waits_to_probe_ = probe_interval_;
  }

  // While it waits to be parted: an answer came.
  void NoteParting(int64_t waited_ns) {
    const bool quick =
        waited_ns < std::max(kShortestNs, sleep_takes_ns_ - kTwoSwitchesNs);
    quick_answers_ = quick ? quick_answers_ + 1 : 0;
    if (quick_answers_ == kAnswersApart) {  // they run at the same time
      parting_ns_ = 0;
      sleep_takes_ns_ = longest_ns_;
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

  int64_t longest_ns_;
  bool learns_;
  int64_t budget_ns_;
  int64_t savings_ns_ = 0;
  int64_t sleep_takes_ns_;  // in the mean: waits that slept at once
  int displaced_ = 0;   // waits for which the losses of the core still count
  int long_waits_ = 0;  // one after the other
  int failures_ = 0;    // one after the other
  int probe_interval_ = kFirstProbeInterval;
  int waits_to_probe_ = 0;
  int64_t parting_ns_ = 0;  // left to spin until the scheduler parts the sides
  int quick_answers_ = 0;   // one after the other, meanwhile
  int probes_to_parting_ =
      0;  // counts those alone before which sleeps are quick
  int parting_interval_ = kFirstPartingInterval;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_SPIN_BUDGET_H_

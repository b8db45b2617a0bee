// SpinBudget: how long the adaptive strategy spins before it sleeps.
//
// Data flow: outcomes of past waits -> nanoseconds to spin in the next.
// Spinning pays when the answer comes while we spin. When it does not (a slow
// peer, or one that needs the very core we spin on) the budget shrinks to zero
// within a few waits, and only a rare probe asks whether that has changed.
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
  // What it costs at most to wake a sleeper: 2 to 4 us on a core that runs, 50
  // on an idle one of a virtual machine. Spinning longer than the sleep would
  // have cost cannot pay (Karlin et al. 1990, "Competitive randomized
  // algorithms for non-uniform problems").
  static constexpr int64_t kLongestNs = 50'000;
  static constexpr int64_t kShortestNs = 4'000;
  static constexpr int64_t kFreeNs = 2'000;
  // What a scheduler gives others before a process has its turn again: 3 to 16
  // ms were seen.
  static constexpr int64_t kMostSavingsNs = 16'000'000;
  // On a core that both share a sleep lasts as long as the peer's own work and
  // two switches: 5 to 8 us were seen.
  static constexpr int64_t kSharedCoreNs = 25'000;
  // What Linux takes to part two processes on a core, beside one that is busy:
  // 79 to 117 ms were seen.
  static constexpr int64_t kPartingNs = 200'000'000;

  // Nanoseconds to spin now; 0: sleep at once.
  int64_t ForThisWait() {
    if (parting_ns_ > 0) return kFreeNs + parting_ns_;
    if (budget_ns_ > 0) return kFreeNs + budget_ns_ + savings_ns_;
    if (waits_to_probe_ > 1) {
      --waits_to_probe_;
      return 0;
    }
    return kFreeNs + kLongestNs;  // until Paid or Failed tells its outcome
  }

  // The condition came true after `spun_ns` of spinning.
  void Paid(int64_t spun_ns) {
    const int64_t waited_ns = std::max<int64_t>(spun_ns - kFreeNs, 0);
    if (parting_ns_ > 0) NoteParting(waited_ns);
    const int64_t wanted = std::clamp(2 * waited_ns, kShortestNs, kLongestNs);
    // Earned: what it took less than a sleep; spent: what it took more.
    const int64_t allowed = std::max(kShortestNs, budget_ns_);
    if (waited_ns < kShortestNs || waited_ns > allowed) {
      savings_ns_ = std::clamp<int64_t>(savings_ns_ + allowed - waited_ns, 0,
                                        kMostSavingsNs);
    }
    budget_ns_ = std::max(wanted, budget_ns_ - budget_ns_ / 64);
    probe_interval_ = kFirstProbeInterval;
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
    budget_ns_ -= budget_ns_ / 4;
    if (budget_ns_ < kShortestNs) {
      budget_ns_ = 0;
      waits_to_probe_ = probe_interval_;
    }
  }

  // It came after a sleep, `waited_ns` after the wait's begin.
  void Slept(int64_t waited_ns) {
    quick_sleeps_ = waited_ns < kSharedCoreNs ? quick_sleeps_ + 1 : 0;
  }

 private:
  static constexpr int kFirstProbeInterval = 16;
  static constexpr int kLastProbeInterval = 1024;
  // So many quick answers, one after the other, come from no shared core.
  static constexpr int kAnswersApart = 64;
  // In probes: a second or two, and some minutes.
  static constexpr int kFirstPartingInterval = 256;
  static constexpr int kLastPartingInterval = 1 << 16;

  // While it waits to be parted: an answer came.
  void NoteParting(int64_t waited_ns) {
    quick_answers_ = waited_ns < kShortestNs ? quick_answers_ + 1 : 0;
    if (quick_answers_ == kAnswersApart) {  // they run at the same time
      parting_ns_ = 0;
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

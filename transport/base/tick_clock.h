// TickClock: CLOCK_MONOTONIC as the processor's own counter tells it, in half
// the time that clock_gettime(2) takes. For loops that read it each time round.
//
// Data flow: both, read together now and then -> how long a tick is; ticks
// since then -> nanoseconds since then.
// Ownership: one for each thread that reads, or for those that take turns.
//
//   TickClock clock;
//   const int64_t begin_ns = clock.Nanos();
//   while (!Ready() && clock.Nanos() - begin_ns < 20'000) {}

#ifndef TANDEM_TRANSPORT_BASE_TICK_CLOCK_H_
#define TANDEM_TRANSPORT_BASE_TICK_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "transport/base/clock.h"

namespace tandem {

// The machine's clocks.
struct MachineTime {
  static uint64_t Ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }
  static int64_t Nanos() { return MonotonicNanos(); }
  // Whether ticks are of one length, and the same on all cores, so far as the
  // kernel knows: it tells the time by them itself. Asks it once a process.
  static bool TicksTellTime();
};

// Not thread-safe; a value. Allocates nothing. No system call where the vDSO
// serves the kernel's clock, but for the constructor's, once a process.
template <typename Time>
class BasicTickClock {
 public:
  // As Time::Nanos(), but for some 0.1 us, and for what the kernel's clock is
  // off from a straight line within kGoodFor: 1 us while adjtimex(2)'s
  // frequency changes, more where a daemon slews faster than that. Never
  // earlier than the time before. As other instructions, it may be done a
  // little before what stands before it.
  int64_t Nanos() {
    if (good_for_ == 0) return Compare();
    const uint64_t passed = Time::Ticks() - ticks_;
    if (passed >= good_for_) return Compare();
    last_ns_ = std::max(last_ns_, At(passed));
    return last_ns_;
  }

 private:
  // 1 to 2 ms at 2 to 4 GHz.
  static constexpr uint64_t kGoodFor = uint64_t{1} << 22;
  // Over which a tick's length is not measured: there is no need to go by a
  // rate of so long ago.
  static constexpr uint64_t kLongestMeasured = 64 * kGoodFor;
  // Two readings with more between them were not of the same time.
  static constexpr uint64_t kTogether = 512;
  // Of a tick's length in nanoseconds; a counter whose ticks are longer than
  // kLongestTickNs would tell the time too coarsely.
  static constexpr int kFractionBits = 31;
  static constexpr uint64_t kLongestTickNs = 2;
  static_assert(kLongestMeasured * kLongestTickNs <=
                uint64_t{1} << (63 - kFractionBits));

  int64_t At(uint64_t passed) const {
    return ns_ + static_cast<int64_t>((passed * rate_) >> kFractionBits);
  }

  // Reads the kernel's clock, and measures ticks by it.
  [[gnu::noinline]] int64_t Compare() {
    if (!trusts_ticks_) return Time::Nanos();
    const uint64_t before = Time::Ticks();
    const int64_t now_ns = Time::Nanos();
    // Read last, it makes this clock late by some nanoseconds as a rule, not
    // early: what waits for a time has it when it ends.
    const uint64_t ticks = Time::Ticks();
    last_ns_ = std::max(last_ns_, now_ns);
    const uint64_t passed = ticks - ticks_;
    if (passed < kGoodFor || ticks - before > kTogether) return last_ns_;
    const auto passed_ns = static_cast<uint64_t>(now_ns - ns_);
    const bool measures =
        passed < kLongestMeasured && passed_ns < passed * kLongestTickNs;
    const uint64_t rate = measures ? (passed_ns << kFractionBits) / passed : 0;
    // Two measurements that agree: a machine that was suspended in one of
    // them, or migrated, has ticks that the kernel's clock does not count.
    const uint64_t change = rate > rate_ ? rate - rate_ : rate_ - rate;
    good_for_ = measures && change <= rate_ / 8 ? kGoodFor : 0;
    if (measures) rate_ = rate;
    ticks_ = ticks;
    ns_ = now_ns;
    return last_ns_;
  }

  bool trusts_ticks_ = Time::TicksTellTime();
  uint64_t ticks_ = 0;     // when both were read,
  int64_t ns_ = 0;         // and what the kernel's clock said
  uint64_t rate_ = 0;      // nanoseconds a tick, with kFractionBits
  uint64_t good_for_ = 0;  // so many ticks after those; 0: not known
  int64_t last_ns_ = 0;
};

using TickClock = BasicTickClock<MachineTime>;

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_TICK_CLOCK_H_

// TickClock: CLOCK_MONOTONIC, computed from the processor's counter, in half
// the time of clock_gettime(2). For loops that read the clock in each turn.
//
// Data flow: the two clocks, read together at times -> the length of a tick;
// ticks since then -> nanoseconds since then.
// Ownership: one for each thread, or for threads that take turns.
//
//   TickClock clock;
//   const int64_t begin_ns = clock.Nanos();
//   while (!Ready() && clock.Nanos() - begin_ns < 20'000) {}

#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace tandem {

// The machine's clocks.
struct MachineTime {
  // On ARM64 those of the counter times a power of two up to 64, so that one of
  // 24 MHz has ticks as short as BasicTickClock wants, but counts by 64.
  static uint64_t Ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count << scale;
#else
    return 0;
#endif
  }
  static int64_t Nanos() {
    const int64_t nanos = MonotonicNanos();
#if defined(__aarch64__)
    asm volatile("isb");  // Ticks() behind it are not read before it
#endif
    return nanos;
  }
  // Whether ticks have one length, and are equal on all cores, as far as the
  // kernel knows: it uses them as its own clock source. Queries the kernel once
  // a process. To be called before Ticks().
  static bool TicksTellTime();

#if defined(__aarch64__)
  static inline int scale = 0;  // written by the first TicksTellTime()
#endif
};

// Not thread-safe; a value type. Allocates nothing. Makes no system call if the
// vDSO serves the kernel's clock, except in the process's first constructor.
template <typename Time>
class BasicTickClock {
 public:
  // Returns Time::Nanos() with an error of some 0.1 us, plus the deviation of
  // the kernel's clock from a straight line within kGoodFor: 1 us while
  // adjtimex(2)'s frequency changes, more if a daemon slews faster. On ARM64
  // plus up to three periods of its counter: 0.12 us at 24 MHz. Never less than
  // the last result. The processor may execute it slightly before earlier
  // instructions.
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
  // The longest interval for a measurement of a tick's length; an older rate is
  // not needed.
  static constexpr uint64_t kLongestMeasured = 64 * kGoodFor;
  // Two readings with more ticks between them do not belong to the same time.
  static constexpr uint64_t kTogether = 512;
  // The fraction bits of a tick's length in nanoseconds. A counter with ticks
  // longer than kLongestTickNs is too coarse.
  static constexpr int kFractionBits = 31;
  static constexpr uint64_t kLongestTickNs = 2;
  static_assert(kLongestMeasured * kLongestTickNs <=
                uint64_t{1} << (63 - kFractionBits));

  int64_t At(uint64_t passed) const {
    return ns_ + static_cast<int64_t>((passed * rate_) >> kFractionBits);
  }

  // Reads the kernel's clock, and measures the length of a tick.
  [[gnu::noinline]] int64_t Compare() {
    if (!trusts_ticks_) return Time::Nanos();
    const uint64_t before = Time::Ticks();
    const int64_t now_ns = Time::Nanos();
    // The counter is read last, so this clock is usually some nanoseconds late,
    // not early: after a wait for a time, that time has passed.
    const uint64_t ticks = Time::Ticks();
    last_ns_ = std::max(last_ns_, now_ns);
    const uint64_t passed = ticks - ticks_;
    if (passed < kGoodFor || ticks - before > kTogether) return last_ns_;
    const auto passed_ns = static_cast<uint64_t>(now_ns - ns_);
    const bool measures =
        passed < kLongestMeasured && passed_ns < passed * kLongestTickNs;
    const uint64_t rate = measures ? (passed_ns << kFractionBits) / passed : 0;
    // Requires two measurements that agree. If the machine was suspended or
    // migrated during one, it has ticks that the kernel's clock does not count.
    const uint64_t change = rate > rate_ ? rate - rate_ : rate_ - rate;
    good_for_ = measures && change <= rate_ / 8 ? kGoodFor : 0;
    if (measures) rate_ = rate;
    ticks_ = ticks;
    ns_ = now_ns;
    return last_ns_;
  }

  bool trusts_ticks_ = Time::TicksTellTime();
  uint64_t ticks_ = 0;     // the counter at the last comparison
  int64_t ns_ = 0;         // the kernel's clock at that time
  uint64_t rate_ = 0;      // nanoseconds a tick, with kFractionBits
  uint64_t good_for_ = 0;  // ticks for which rate_ is valid; 0: none
  int64_t last_ns_ = 0;
};

using TickClock = BasicTickClock<MachineTime>;

}  // namespace tandem

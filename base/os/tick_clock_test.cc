#include "base/os/tick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/clock.h"

namespace tandem {
namespace {

// A simulated machine. The test advances its time; each reading adds a little.
struct FakeTime {
  static uint64_t Ticks() {
    ++tick_readings;
    return ticks - ticks % period;
  }
  static int64_t Nanos() {
    ++nano_readings;
    PassTicks(60);
    const auto read = static_cast<int64_t>(nanos);
    PassTicks(interrupted_for);
    return read;
  }
  static bool TicksTellTime() { return tell_time; }

  static void Pass(double secs) {
    PassTicks(static_cast<uint64_t>(secs * hertz));
  }
  static void PassTicks(uint64_t passed) {
    ticks += passed;
    nanos += static_cast<double>(passed) / hertz * 1e9 * (1 + steered);
  }
  static void Reset() {
    ticks = 5'000'000'000;
    nanos = 2e12;
    hertz = 2.6e9;
    period = 1;
    steered = 0;
    interrupted_for = 0;
    tell_time = true;
    tick_readings = 0;
    nano_readings = 0;
  }

  static inline uint64_t ticks;
  static inline double nanos;
  static inline double hertz;
  static inline uint64_t period;           // Of the counter, in ticks.
  static inline double steered;            // By the kernel: a relative change.
  static inline uint64_t interrupted_for;  // Ticks, right after a reading.
  static inline bool tell_time;
  static inline int tick_readings;
  static inline int nano_readings;
};

class TickClockTest : public testing::Test {
 protected:
  TickClockTest() {
    FakeTime::Reset();
    clock_ = {};  // It checks whether ticks are usable as time.
  }

  // Reads the clock every 100 us for `secs`. Returns the largest error.
  double WorstErrorOver(double secs) {
    double worst = 0;
    int64_t last = 0;
    for (double passed = 0; passed < secs; passed += 1e-4) {
      FakeTime::Pass(1e-4);
      const int64_t now = clock_.Nanos();
      EXPECT_GE(now, last);
      last = now;
      worst =
          std::max(worst, std::abs(static_cast<double>(now) - FakeTime::nanos));
    }
    return worst;
  }

  BasicTickClock<FakeTime> clock_;
};

TEST_F(TickClockTest, UsesTheKernelsClockUntilItHasMeasured) {
  EXPECT_LT(WorstErrorOver(0.003), 1);
  EXPECT_GE(FakeTime::nano_readings, 30);
}

TEST_F(TickClockTest, WorksRightAfterBoot) {
  FakeTime::ticks = 200'000'000;  // Counted before the kernel's clock began.
  FakeTime::nanos = 1e8;
  EXPECT_LT(WorstErrorOver(1), 100);
}

TEST_F(TickClockTest, SeldomReadsTheKernelsClockAfterMeasuring) {
  WorstErrorOver(0.1);
  FakeTime::nano_readings = 0;
  FakeTime::tick_readings = 0;
  WorstErrorOver(1);
  EXPECT_GT(FakeTime::nano_readings, 500);  // Every 1.6 ms at 2.6 GHz.
  EXPECT_LT(FakeTime::nano_readings, 700);
  EXPECT_GE(FakeTime::tick_readings, 10'000);
}

TEST_F(TickClockTest, MeasuresItsTime) { EXPECT_LT(WorstErrorOver(3), 100); }

TEST_F(TickClockTest, WorksWithAnyCounterFromHalfAGigahertz) {
  for (const double hertz : {0.51e9, 1e9, 6e9}) {
    FakeTime::Reset();
    FakeTime::hertz = hertz;
    clock_ = {};
    EXPECT_LT(WorstErrorOver(3), 200) << hertz;
    EXPECT_LT(FakeTime::nano_readings, 6'000) << hertz;
  }
}

// Those of ARM64 machines, with ticks of 0.5 to 1 ns.
TEST_F(TickClockTest, WorksWithACounterOfLongPeriods) {
  for (const double hertz : {1e6, 24e6, 62.5e6, 100e6, 1e9}) {
    FakeTime::Reset();
    auto& period = FakeTime::period;
    while (hertz * static_cast<double>(period) < 1e9 && period < 64) {
      period *= 2;
    }
    FakeTime::hertz = hertz * static_cast<double>(period);
    clock_ = {};
    const bool is_usable = hertz > 1e6;
    EXPECT_LT(WorstErrorOver(3), is_usable ? 100 + 3e9 / hertz : 1) << hertz;
    EXPECT_EQ(FakeTime::nano_readings < 6'000, is_usable) << hertz;
  }
}

TEST_F(TickClockTest, DoesNotUseACoarserCounter) {
  FakeTime::hertz = 25e6;
  EXPECT_LT(WorstErrorOver(3), 1);
  EXPECT_GE(FakeTime::nano_readings, 30'000);
}

// A period of 1.6 ms and a reading 0.1 ms later use the previous rate.
TEST_F(TickClockTest, FollowsAdjustedKernelClock) {
  WorstErrorOver(0.1);
  FakeTime::steered = 500e-6;  // The limit of adjtimex(2)'s frequency.
  EXPECT_LT(WorstErrorOver(0.01), 1.7e6 * 500e-6 + 100);
  EXPECT_LT(WorstErrorOver(1), 100);
  FakeTime::steered = -500e-6;
  EXPECT_LT(WorstErrorOver(0.01), 1.7e6 * 1000e-6 + 100);
  EXPECT_LT(WorstErrorOver(1), 100);
  FakeTime::steered = 0.0833;  // chrony's maxslewrate
  EXPECT_LT(WorstErrorOver(0.01), 1.7e6 * 0.0838 + 100);
  EXPECT_LT(WorstErrorOver(1), 100);
  FakeTime::steered = -0.0833;
  EXPECT_LT(WorstErrorOver(0.01), 1.7e6 * 0.1666 + 100);
  EXPECT_LT(WorstErrorOver(1), 100);
}

TEST_F(TickClockTest, IgnoresInterruptedReadings) {
  WorstErrorOver(0.1);
  FakeTime::interrupted_for = 100'000;
  FakeTime::Pass(0.01);
  clock_.Nanos();
  FakeTime::interrupted_for = 0;
  EXPECT_LT(WorstErrorOver(1), 100);
}

// The counter runs during a suspension, CLOCK_MONOTONIC does not.
TEST_F(TickClockTest, IsCorrectImmediatelyAfterASuspension) {
  for (const int bits : {23, 25, 27, 29, 43}) {
    WorstErrorOver(0.1);
    FakeTime::ticks += uint64_t{1} << bits;
    EXPECT_LT(WorstErrorOver(1), 100) << bits;
  }
}

TEST_F(TickClockTest, IgnoresAnOldRate) {
  WorstErrorOver(0.1);
  FakeTime::steered = 0.0833;
  for (int step = 0; step < 10; ++step) {
    FakeTime::Pass(1);
    EXPECT_LT(WorstErrorOver(0.001), 1) << step;
  }
}

TEST_F(TickClockTest, NeverGoesBackWhenTheCounterDoes) {
  WorstErrorOver(0.1);
  const int64_t before = clock_.Nanos();
  FakeTime::ticks -= 10'000;
  EXPECT_GE(clock_.Nanos(), before);
  EXPECT_LT(WorstErrorOver(1), 5'000);
}

TEST_F(TickClockTest, UsesTheKernelsClockIfItDoesNotUseTicks) {
  FakeTime::tell_time = false;
  clock_ = {};
  EXPECT_LT(WorstErrorOver(1), 1);
  EXPECT_EQ(FakeTime::tick_readings, 0);
}

TEST(MachineTime, TrustsTheCounterWhereTheKernelDoes) {
  std::ifstream file(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  file >> name;
#if defined(__x86_64__)
  EXPECT_EQ(MachineTime::TicksTellTime(), name == "tsc") << name;
#else
  EXPECT_EQ(MachineTime::TicksTellTime(), name == "arch_sys_counter") << name;
#endif
}

TEST(TickClock, AgreesWithTheKernelClock) {
  TickClock clock;
  const int64_t end = MonotonicNanos() + 200'000'000;
  int64_t last = 0;
  for (int64_t before = MonotonicNanos(); before < end;) {
    const int64_t now = clock.Nanos();
    const int64_t after = MonotonicNanos();
    ASSERT_GE(now, last);
    // More than chrony may adjust within 2 ms.
    ASSERT_GE(now, before - 500'000);
    ASSERT_LE(now, after + 500'000);
    last = now;
    before = after;
  }
}

}  // namespace
}  // namespace tandem

#include "transport/wait/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace tandem {
namespace {

constexpr int64_t kWaitNs = 1'000'000;

// Simulates a wait whose request comes after `length_ns`, and a timer that is
// late. Returns how long the wait polled; -1: it had no nap.
int64_t WaitOnce(Forecast& forecast, int64_t length_ns, int64_t late_ns) {
  const Forecast::Nap nap = forecast.ForThisWait();
  int64_t polled_ns = -1;
  if (nap.sleep_ns != 0) {
    const int64_t woken_ns = nap.sleep_ns + late_ns;
    if (length_ns >= nap.sleep_ns) forecast.Woke(late_ns);
    if (length_ns < woken_ns) {
      forecast.Miss();
      polled_ns = 0;
    } else if (length_ns <= nap.polls_until_ns) {
      forecast.Hit();
      polled_ns = std::max<int64_t>(0, length_ns - woken_ns);
    } else {
      forecast.Miss();
      polled_ns = std::max<int64_t>(0, nap.polls_until_ns - woken_ns);
    }
  }
  forecast.Waited(length_ns);
  return polled_ns;
}

// Of waits of about a millisecond.
Forecast Learned() {
  Forecast forecast;
  for (int i = 0; i < 100; ++i) {
    WaitOnce(forecast, kWaitNs + i % 2 * 10'000, 30'000);
  }
  return forecast;
}

TEST(Forecast, WakesShortlyBeforeARegularRequest) {
  Forecast forecast = Learned();
  for (int i = 0; i < 100; ++i) {
    const int64_t polled_ns =
        WaitOnce(forecast, kWaitNs + i % 2 * 10'000, 30'000);
    ASSERT_GT(polled_ns, 0);
    ASSERT_LT(polled_ns, 50'000);
  }
}

TEST(Forecast, ThereIsNoneBeforeTheFirstWaits) {
  EXPECT_EQ(Forecast().ForThisWait().sleep_ns, 0);
}

TEST(Forecast, ThereIsNoneForIrregularRequests) {
  Forecast forecast;
  int naps = 0;
  for (int i = 0; i < 1000; ++i) {
    naps += WaitOnce(forecast, kWaitNs / 2 * (1 + i % 3), 30'000) >= 0;
  }
  EXPECT_LT(naps, 10);
}

TEST(Forecast, ThereAreFewWhereTheTimerIsTooLate) {
  Forecast forecast;
  int naps = 0;
  for (int i = 0; i < 1000; ++i) {
    naps += WaitOnce(forecast, kWaitNs, kWaitNs / 2) >= 0;
  }
  EXPECT_LT(naps, 50);
}

TEST(Forecast, LearnsHowLateATimerIs) {
  Forecast forecast;
  int polls = 0;
  for (int i = 0; i < 3000; ++i) {
    polls += WaitOnce(forecast, kWaitNs + i % 2 * 5'000, 100'000) > 0;
  }
  EXPECT_GT(polls, 1000);
}

TEST(Forecast, WakesEarlierByALateTimer) {
  Forecast forecast = Learned();
  const int64_t before_ns = forecast.ForThisWait().sleep_ns;
  for (int i = 0; i < 4; ++i) forecast.Woke(90'000);
  EXPECT_LT(forecast.ForThisWait().sleep_ns, before_ns - 40'000);
}

TEST(Forecast, OneLongWaitIsForgottenSoon) {
  Forecast forecast = Learned();
  WaitOnce(forecast, 3'000'000'000, 30'000);
  int without = 0;
  while (WaitOnce(forecast, kWaitNs, 30'000) < 0) ++without;
  EXPECT_LT(without, 50);
}

TEST(Forecast, PollsForHalfAMillisecondAtMost) {
  Forecast forecast;
  for (int i = 0; i < 1000; ++i) {
    const int64_t polled_ns =
        WaitOnce(forecast, 10'000 * kWaitNs + i % 2 * 300'000, 30'000);
    ASSERT_LE(polled_ns, Forecast::kMostPolledNs);
  }
}

TEST(Forecast, AFrozenProcessIsForgottenSoon) {
  Forecast forecast = Learned();
  forecast.Woke(60'000'000'000);
  int without = 0;
  while (WaitOnce(forecast, kWaitNs, 30'000) < 0) ++without;
  EXPECT_LT(without, 150);
}

TEST(Forecast, MissesEndItForAWhile) {
  Forecast forecast = Learned();
  forecast.Miss();
  EXPECT_NE(forecast.ForThisWait().sleep_ns, 0);
  forecast.Miss();
  int without = 0;
  while (forecast.ForThisWait().sleep_ns == 0) ++without;
  EXPECT_EQ(without, 15);
}

}  // namespace
}  // namespace tandem

// Tests under SCHED_FIFO. They need CAP_SYS_NICE, and are skipped without it.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/shared_word.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

struct PatientWatch : WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

// Two words and a bell for each side.
struct Exchange {
  SharedWord<uint32_t> asked{};
  SharedWord<uint32_t> answered{};
  SharedWord<uint32_t> bells[2] = {};
  SharedWord<uint32_t> sleepers[2] = {};
};

class RealTimeTest : public testing::TestWithParam<WaitStrategy> {};
INSTANTIATE_TEST_SUITE_P(AllStrategies, RealTimeTest,
                         testing::Values(WaitStrategy::kSpin,
                                         WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

// With kSpin, each side spins for 10 ms before it sleeps. The other strategies
// sleep earlier. If they also spun for 10 ms, their exchanges would take longer
// than `kAlarmSecs`.
constexpr uint32_t Exchanges(WaitStrategy strategy) {
  return strategy == WaitStrategy::kSpin ? 10 : 10'000;
}
constexpr unsigned kAlarmSecs = 120;
constexpr double kLimitSecs = 60;

// Answers each exchange; each wait lasts at most `wait_secs`.
void Answer(Exchange& exchange, WaitStrategy strategy, double wait_secs) {
  Waiter waiter(Doorbell(&exchange.bells[0], &exchange.sleepers[0]), strategy);
  Doorbell peer(&exchange.bells[1], &exchange.sleepers[1]);
  PatientWatch watch;
  for (uint32_t i = 1; i <= Exchanges(strategy); ++i) {
    const auto asked = [&] {
      return exchange.asked.load(std::memory_order_acquire) == i;
    };
    const Deadline limit = Deadline::After(kLimitSecs);
    ErrorCode code = ErrorCode::kStepTimeout;
    while (code == ErrorCode::kStepTimeout &&
           !limit.PassedAt(MonotonicNanos())) {
      code = waiter.Until(asked, Deadline::After(wait_secs), watch);
    }
    ASSERT_EQ(code, ErrorCode::kOk);
    exchange.answered.store(i, std::memory_order_release);
    peer.NotifyIfWaiting();
  }
}

// Requests each exchange, on one core with the answering thread. Returns errno
// if this thread cannot use SCHED_FIFO.
int AskOnOneCore(WaitStrategy strategy, double answerer_wait_secs) {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  EXPECT_EQ(sched_setaffinity(0, sizeof(here), &here), 0);
  const sched_param priority = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) return errno;
  Exchange exchange;
  // The thread inherits policy, priority and core.
  const std::jthread peer(
      [&] { Answer(exchange, strategy, answerer_wait_secs); });
  Waiter waiter(Doorbell(&exchange.bells[1], &exchange.sleepers[1]), strategy);
  Doorbell bell(&exchange.bells[0], &exchange.sleepers[0]);
  PatientWatch watch;
  for (uint32_t i = 1; i <= Exchanges(strategy); ++i) {
    exchange.asked.store(i, std::memory_order_release);
    bell.NotifyIfWaiting();
    const auto answered = [&] {
      return exchange.answered.load(std::memory_order_acquire) == i;
    };
    const ErrorCode code =
        waiter.Until(answered, Deadline::After(kLimitSecs / 2), watch);
    EXPECT_EQ(code, ErrorCode::kOk) << "exchange " << i;
    if (code != ErrorCode::kOk) break;
  }
  return 0;
}

// The scheduler does not preempt a thread for one of equal priority.
TEST_P(RealTimeTest, TwoSidesOfOnePriorityTakeTurnsOnOneCore) {
  alarm(kAlarmSecs);
  int error = 0;
  std::thread([&] { error = AskOnOneCore(GetParam(), kLimitSecs); }).join();
  alarm(0);
  if (error != 0) GTEST_SKIP() << "sched_setscheduler: " << strerror(error);
}

// Like an engine that sends streams a thousand times a second.
TEST_P(RealTimeTest, WaitsThatTimeOutLetThePeerRun) {
  alarm(kAlarmSecs);
  int error = 0;
  std::thread([&] { error = AskOnOneCore(GetParam(), 0.001); }).join();
  alarm(0);
  if (error != 0) GTEST_SKIP() << "sched_setscheduler: " << strerror(error);
}

}  // namespace
}  // namespace tandem

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/report.h"

namespace tandem {
namespace {

// A region without problems, with an exchange in progress.
RegionReport Healthy() {
  RegionReport report;
  report.has_header = true;
  report.engine = {.life = Life::kAlive, .pid = 7, .phase = Phase::kStepping};
  report.client = {.life = Life::kAlive, .pid = 8, .phase = Phase::kWaiting};
  report.exchange = ExchangeState::kPending;
  report.to_client.capacity = 1024;
  report.to_engine.capacity = 1024;
  return report;
}

void ExpectOne(const std::vector<std::string>& said,
               const std::vector<std::string>& none, absl::string_view fact) {
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(absl::StrContains(said[0], fact)) << said[0];
  EXPECT_TRUE(none.empty()) << none[0];
}

void ExpectProblem(const RegionReport& report, absl::string_view fact) {
  const RegionVerdict verdict = JudgeRegion(report);
  ExpectOne(verdict.problems, verdict.remarks, fact);
}

void ExpectRemark(const RegionReport& report, absl::string_view fact) {
  const RegionVerdict verdict = JudgeRegion(report);
  ExpectOne(verdict.remarks, verdict.problems, fact);
}

TEST(RegionVerdict, NothingIsWrongWithAHealthyRegion) {
  const RegionVerdict verdict = JudgeRegion(Healthy());
  EXPECT_TRUE(verdict.problems.empty());
  EXPECT_TRUE(verdict.remarks.empty());
}

TEST(RegionVerdict, ADeadEngineIsAProblem) {
  RegionReport report = Healthy();
  report.engine.life = Life::kDead;
  report.engine.phase_secs = 100;  // It adds no second sentence.
  ExpectProblem(report, "pid 7");
}

TEST(RegionVerdict, TheSlowestWorkerIsNamed) {
  RegionReport report = Healthy();
  report.workers = {{.life = Life::kAlive, .pid = 11, .done = true},
                    {.life = Life::kAlive,
                     .pid = 12,
                     .env = 5,
                     .phase = Phase::kStepping,
                     .phase_secs = 2}};
  ExpectRemark(report,
               "1 of 2 workers are done; the client waits for worker 1 "
               "(pid 12)");
  report.workers[1].phase_secs = 0.5;
  EXPECT_TRUE(JudgeRegion(report).remarks.empty());
  report.workers[1].life = Life::kDead;
  ExpectRemark(report, "worker 1 (pid 12) died");
}

TEST(RegionVerdict, AWorkerThatDoesNotBeginIsNamedInPlaceOfTheEngine) {
  RegionReport report = Healthy();
  report.exchange = ExchangeState::kPending;
  report.engine.phase = Phase::kIdle;
  report.engine.phase_secs = report.client.phase_secs = 2;
  report.workers = {{.life = Life::kAlive, .pid = 11, .done = true},
                    {.life = Life::kAlive,
                     .pid = 12,
                     .env = 0xffffffff,
                     .phase = Phase::kIdle,
                     .phase_secs = 2}};
  ExpectRemark(report,
               "worker 1 (pid 12), which is idle for 2.0 s: it is "
               "stopped (SIGSTOP");
  // It was idle before the exchange.
  report.client.phase_secs = 0.1;
  EXPECT_TRUE(JudgeRegion(report).remarks.empty());
}

TEST(RegionVerdict, ADeadClientIsAProblem) {
  RegionReport report = Healthy();
  report.client.life = Life::kDead;
  ExpectProblem(report, "pid 8");
}

TEST(RegionVerdict, NoClientOrAHeaderOnlyOneIsFine) {
  for (const Life life : {Life::kAbsent, Life::kUnknown}) {
    RegionReport report = Healthy();
    report.client.life = life;
    EXPECT_TRUE(JudgeRegion(report).problems.empty());
    EXPECT_TRUE(JudgeRegion(report).remarks.empty());
  }
}

TEST(RegionVerdict, ALongStepIsARemark) {
  RegionReport report = Healthy();
  report.engine.phase_secs = 12.5;
  report.client.phase_secs = 12.5;
  ExpectRemark(report, "stepping for 12.5 s");
}

TEST(RegionVerdict, AnExchangeThatTheEngineDoesNotTakeIsARemark) {
  RegionReport report = Healthy();
  report.engine.phase = Phase::kIdle;
  report.engine.phase_secs = 13;
  report.client.phase_secs = 12;
  ExpectRemark(report, "waiting for 12.0 s");
}

TEST(RegionVerdict, AnIdleEngineWithoutAnythingToDoIsFine) {
  RegionReport report = Healthy();
  report.engine.phase = Phase::kIdle;
  report.engine.phase_secs = 1000;
  report.client.phase = Phase::kIdle;
  report.client.phase_secs = 1000;
  report.exchange = ExchangeState::kIdle;
  EXPECT_TRUE(JudgeRegion(report).remarks.empty());
}

TEST(RegionVerdict, InvalidCountsAreAProblem) {
  RegionReport report = Healthy();
  report.exchange = ExchangeState::kImpossible;
  report.action_seq = 99;
  ExpectProblem(report, "99");
}

TEST(RegionVerdict, AGarbledRingIsAProblemAndAFullOneARemark) {
  RegionReport report = Healthy();
  report.to_engine.problem = "a length of 5000";
  ExpectProblem(report, "to the engine: a length of 5000");
  report = Healthy();
  report.to_client.used_bytes = 1000;
  ExpectRemark(report, "98 % full");
}

TEST(RegionVerdict, AFailedExchangeIsARemark) {
  RegionReport report = Healthy();
  report.status = ErrorCode::kEngineFailed;
  report.error_text = "joint 3";
  ExpectRemark(report, "EngineFailed, joint 3");
  report.status = static_cast<ErrorCode>(999);
  ExpectRemark(report, "Unknown");
}

TEST(RegionVerdict, ReportsOnlyAMissingHeader) {
  RegionReport report;
  report.header_problems = {"too short"};
  ExpectProblem(report, "too short");
}

}  // namespace
}  // namespace tandem

#include "slow_lane/ctl/runs_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'100);

v1::RunDescription Going() {
  v1::RunDescription run;
  run.mutable_record()->set_run_id("01ARZ");
  run.mutable_record()->set_status(gymgui::trainer::RUN_STATUS_EXEC);
  run.mutable_record()->mutable_created_at()->set_seconds(1'700'000'000);
  run.set_run_name("ant");
  run.set_steps(2'500);
  run.set_episodes(12);
  run.set_last_return(97.5);
  run.set_steps_per_second(250);
  run.set_max_steps(10'000);
  run.set_proxy_starts(1);
  return run;
}

v1::RunDescription Faulted() {
  v1::RunDescription run = Going();
  run.mutable_record()->set_run_id("02BAD");
  run.mutable_record()->set_status(gymgui::trainer::RUN_STATUS_FAULT);
  run.mutable_record()->mutable_updated_at()->set_seconds(1'700'000'007);
  run.mutable_record()->set_failure_reason(
      "the worker exited with code 1; the last it wrote to stderr:\n"
      "Traceback (most recent call last):\n  File x\nValueError: \x1b[1m!\n");
  run.clear_max_steps();
  run.clear_last_return();
  run.set_malformed(3);
  return run;
}

TEST(RunsText, TheTableHasALineForEach) {
  EXPECT_EQ(
      RunsTable({Going(), Faulted()}, kNow),
      "RUN    NAME  STATE       TIME  STEPS  STEPS/S  EPISODES  RETURN  BAD  "
      "PROGRESS            REMARK\n"
      "01ARZ  ant   EXECUTING  1 min  2,500      250        12    97.5       "
      "[##--------]  25 %\n"
      "02BAD  ant   FAULTED      7 s  2,500                 12            3  "
      "                    the worker exited with code 1; the last it wrote to "
      "stderr: ValueError: \\x1b[1m!\n");
}

TEST(RunsText, NoNameSteersATerminal) {
  v1::RunDescription run = Going();
  run.mutable_record()->set_run_id("01\x1b[31m");
  run.set_run_name("\u202egpj.exe \u00fcbung");
  run.set_folder("/data/\u2066");
  const absl::string_view name = "\\xe2\\x80\\xaegpj.exe \u00fcbung";
  for (const std::string& text :
       {RunsTable({run}, kNow), RunPage(run, {}, kNow)}) {
    EXPECT_TRUE(absl::StrContains(text, "01\\x1b[31m")) << text;
    EXPECT_TRUE(absl::StrContains(text, name)) << text;
    EXPECT_EQ(text, PrintableLines(text));
  }
  EXPECT_EQ(RunLine(run, kNow), PrintableLines(RunLine(run, kNow)));
}

TEST(RunsText, RemarksSayAllThatIsWrong) {
  v1::RunDescription run = Going();
  EXPECT_EQ(RemarkOn(run, kNow), "");
  run.set_waiting_for("2 GPUs");
  EXPECT_EQ(RemarkOn(run, kNow), "waits for 2 GPUs");
  run.clear_waiting_for();
  run.set_output_problem("its output cannot be read on: it was cut");
  EXPECT_EQ(RemarkOn(run, kNow), "its output cannot be read on: it was cut");
  run.clear_output_problem();
  run.set_unreachable(true);
  EXPECT_EQ(RemarkOn(run, kNow), "unreachable, no beat yet");
  run.mutable_record()->mutable_last_heartbeat()->set_seconds(1'699'999'800);
  run.set_proxy_starts(3);
  EXPECT_EQ(RemarkOn(run, kNow),
            "unreachable, no beat for 5 min; proxy started 3 times");
  run.mutable_record()->set_failure_reason("cancelled");
  EXPECT_TRUE(absl::StartsWith(RemarkOn(run, kNow), "cancelled; "));
}

TEST(RunsText, AReasonIsItsFirstLine) {
  v1::RunDescription run = Going();
  run.mutable_record()->set_failure_reason("no disk\nmore about that");
  EXPECT_EQ(RemarkOn(run, kNow), "no disk");
}

TEST(RunsText, TheSummaryCountsStates) {
  EXPECT_EQ(RunsSummary({}), "0 runs");
  v1::RunDescription ended = Faulted();
  ended.set_steps_per_second(0);
  EXPECT_EQ(RunsSummary({Going(), ended, Going()}),
            "3 runs: 2 EXECUTING, 1 FAULTED; 500 steps/s");
}

TEST(RunsText, ALineOfALogSaysHowARunIs) {
  EXPECT_EQ(RunLine(Going(), kNow),
            "01ARZ EXECUTING after 1 min, 2,500 steps (250/s) of 10,000, 12 "
            "episodes, last return 97.5\n");
}

TEST(RunsText, APageHasTheLastEpisodes) {
  v1::RunDescription run = Going();
  run.set_steps_printed(25'000);
  run.set_max_steps(100'000);
  gymgui::trainer::RunEpisode episode;
  episode.set_episode_index(11);
  episode.set_total_reward(97.5);
  episode.set_steps(200);
  episode.set_truncated(true);
  const std::string page = RunPage(run, {episode}, kNow);
  EXPECT_TRUE(absl::StrContains(page, "progress   [##########----")) << page;
  EXPECT_TRUE(absl::StrContains(page, "2,500 kept of 25,000 printed, 250/s"));
  EXPECT_TRUE(absl::StrContains(page,
                                "EPISODE  RETURN  STEPS  END\n"
                                "     11    97.5    200  truncated\n"))
      << page;
}

TEST(RunsText, JsonHasNumbersAndNulls) {
  v1::DescribeRunsResponse response;
  response.set_daemon_state("ok");
  response.set_oldest_queued_secs(0.25);
  *response.add_runs() = Going();
  *response.add_runs() = Faulted();
  const auto json = nlohmann::json::parse(RunsJson(response));
  EXPECT_EQ(json["daemon_state"], "ok");
  EXPECT_EQ(json["oldest_queued_secs"], 0.25);
  EXPECT_EQ(json["runs"][0]["run_id"], "01ARZ");
  EXPECT_EQ(json["runs"][0]["state"], "EXECUTING");
  EXPECT_EQ(json["runs"][0]["steps"], 2'500);
  EXPECT_EQ(json["runs"][0]["created_at"], "2023-11-14T22:13:20.000Z");
  EXPECT_TRUE(json["runs"][0]["failure_reason"].is_null());
  EXPECT_TRUE(json["runs"][1]["last_return"].is_null());
  EXPECT_TRUE(absl::StrContains(
      json["runs"][1]["failure_reason"].get<std::string>(), "\nTraceback"));
}

}  // namespace
}  // namespace tandem::slow_lane

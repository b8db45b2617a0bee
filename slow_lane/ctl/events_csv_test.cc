#include "slow_lane/ctl/events_csv.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::slow_lane {
namespace {

using What = ExportCommand::What;

std::string Rows(const v1::EventBatch& batch, What what) {
  std::string csv;
  AppendCsv(batch, what, &csv);
  return csv;
}

v1::EventBatch OneOfEach() {
  v1::EventBatch batch;
  auto* const step = batch.add_steps();
  step->set_seq_id(7);
  step->set_worker_id("w");
  step->set_episode_index(1);
  step->set_step_index(2);
  step->set_reward(0.5);
  step->set_truncated(true);
  step->mutable_timestamp()->set_seconds(1'700'000'000);
  step->mutable_timestamp()->set_nanos(5'000'000);
  step->set_action_json("[1, 2]");
  auto* const episode = batch.add_episodes();
  episode->set_seq_id(3);
  episode->set_total_reward(-1);
  episode->set_steps(9);
  episode->set_metadata_json("{\"a\": 1}");
  auto* const event = batch.add_lifecycle();
  event->set_seq_id(1);
  event->set_event("run_started");
  return batch;
}

TEST(EventsCsv, AStepIsALine) {
  EXPECT_EQ(Rows(OneOfEach(), What::kSteps),
            "7,w,1,2,0.5,false,true,2023-11-14T22:13:20.005Z,,\"[1, 2]\",,,,0,,"
            ",,0\n");
}

TEST(EventsCsv, AnEpisodeIsALine) {
  EXPECT_EQ(Rows(OneOfEach(), What::kEpisodes),
            "3,,0,-1,9,false,false,,,\"{\"\"a\"\": 1}\"\n");
}

TEST(EventsCsv, ALifecycleEventIsALine) {
  EXPECT_EQ(Rows(OneOfEach(), What::kLifecycle), "1,,run_started,,\n");
}

TEST(EventsCsv, TheHeaderHasAsManyNamesAsARowHasFields) {
  v1::EventBatch batch = OneOfEach();
  batch.mutable_steps(0)->set_action_json("");
  batch.mutable_episodes(0)->set_metadata_json("");
  for (const What what : {What::kSteps, What::kEpisodes, What::kLifecycle}) {
    const std::string header = CsvHeader(what);
    const std::string row = Rows(batch, what);
    EXPECT_EQ(header.back(), '\n');
    EXPECT_EQ(std::count(header.begin(), header.end(), ','),
              std::count(row.begin(), row.end(), ','))
        << header;
  }
}

}  // namespace
}  // namespace tandem::slow_lane

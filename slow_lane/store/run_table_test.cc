#include "slow_lane/store/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "slow_lane/store/schema.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RunTableTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::Open(folder_.File("tandem.db"), {});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    ASSERT_TRUE(MakeOrCheckSchema(*database_).ok());
  }

  RunRow Insert(const std::string& run_id) {
    RunRow run = RunNamed(run_id);
    const absl::Status status = InsertRun(*database_, &run);
    EXPECT_TRUE(status.ok()) << status;
    return run;
  }

  std::vector<RunRow> Updates(uint64_t since, size_t limit = 100) {
    auto updates = ReadUpdates(*database_, since, limit);
    EXPECT_TRUE(updates.ok()) << updates.status();
    return *updates;
  }

  TestFolder folder_;
  std::unique_ptr<Database> database_;
};

TEST_F(RunTableTest, ARunComesBackAsItWas) {
  RunRow run = Insert("a");
  EXPECT_EQ(run.update_seq, 1u);
  run.status = gymgui::trainer::RUN_STATUS_FAULT;
  run.failure_reason = "";
  run.gpu_slots = {0, 3};
  run.updated_at_ns += 5;
  run.cancel_requested = true;
  run.proxy_starts = 2;
  run.worker.set_pid(77);
  run.worker.set_start_time(uint64_t{1} << 63);
  run.worker.set_boot_id("boot");
  run.last_beat_at_ns = 9;
  v1::RegisteredWorker learner;
  learner.set_worker_id("learner");
  learner.set_schema_version(1);
  ASSERT_TRUE(SaveWorker(*database_, "a", learner).ok());
  learner.set_worker_kind("kind");
  learner.set_proto_version("MOSAIC/1.0");
  learner.set_schema_id("schema");
  learner.set_supports_pause(true);
  learner.set_supports_checkpoint(true);
  ASSERT_TRUE(SaveWorker(*database_, "a", learner).ok());
  ASSERT_TRUE(UpdateRun(*database_, &run).ok());
  EXPECT_EQ(run.update_seq, 2u);

  auto runs = LoadRuns(*database_);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 1u);
  const RunRow& got = runs->front();
  EXPECT_EQ(got.run_id, "a");
  EXPECT_EQ(got.run_name, "name of a");
  EXPECT_EQ(got.config_json, "{}");
  EXPECT_EQ(got.digest, "d1");
  EXPECT_EQ(got.token, "t1");
  EXPECT_EQ(got.created_at_ns, run.created_at_ns);
  EXPECT_EQ(got.status, gymgui::trainer::RUN_STATUS_FAULT);
  EXPECT_EQ(got.failure_reason, "");
  EXPECT_THAT(got.gpu_slots, ElementsAre(0, 3));
  EXPECT_EQ(got.updated_at_ns, run.updated_at_ns);
  EXPECT_EQ(got.update_seq, 2u);
  EXPECT_TRUE(got.cancel_requested);
  EXPECT_EQ(got.proxy_starts, 2u);
  EXPECT_EQ(got.worker.SerializeAsString(), run.worker.SerializeAsString());
  EXPECT_EQ(got.last_beat_at_ns, 9);
  ASSERT_EQ(got.workers.size(), 1u);
  EXPECT_EQ(got.workers.at("learner").SerializeAsString(),
            learner.SerializeAsString());
}

TEST_F(RunTableTest, OnlyChangesOfStateAreUpdates) {
  RunRow a = Insert("a");
  RunRow b = Insert("b");
  a.proxy_starts = 1;
  a.gpu_slots = {2};
  ASSERT_TRUE(SaveRun(*database_, a).ok());
  const auto saved = LoadRuns(*database_);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->front().proxy_starts, 1u);
  EXPECT_THAT(saved->front().gpu_slots, ElementsAre(2));
  a.status = gymgui::trainer::RUN_STATUS_EXEC;
  a.gpu_slots = {1};
  a.updated_at_ns += 3;
  ASSERT_TRUE(UpdateRun(*database_, &a).ok());

  const std::vector<RunRow> all = Updates(0);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].run_id, "b");
  EXPECT_EQ(all[1].status, gymgui::trainer::RUN_STATUS_INIT);
  EXPECT_EQ(all[2].update_seq, 3u);
  EXPECT_EQ(all[2].run_id, "a");
  EXPECT_EQ(all[2].digest, "d1");
  EXPECT_EQ(all[2].created_at_ns, a.created_at_ns);
  EXPECT_EQ(all[2].status, gymgui::trainer::RUN_STATUS_EXEC);
  EXPECT_EQ(all[2].failure_reason, std::nullopt);
  EXPECT_THAT(all[2].gpu_slots, ElementsAre(1));
  EXPECT_EQ(all[2].updated_at_ns, a.updated_at_ns);
  EXPECT_EQ(Updates(2).size(), 1u);
  EXPECT_EQ(Updates(0, 2).size(), 2u);
  EXPECT_THAT(Updates(~uint64_t{0}), IsEmpty());
}

TEST_F(RunTableTest, ARunIdIsTakenOnce) {
  Insert("a");
  RunRow again = RunNamed("a");
  const absl::Status status = InsertRun(*database_, &again);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(Updates(0).size(), 1u);
}

TEST_F(RunTableTest, UnknownRunIsNotFound) {
  RunRow run = RunNamed("missing");
  EXPECT_TRUE(absl::IsNotFound(UpdateRun(*database_, &run)));
  EXPECT_TRUE(absl::IsNotFound(SaveRun(*database_, run)));
  EXPECT_TRUE(absl::IsNotFound(SaveWorker(*database_, "missing", {})));
  EXPECT_TRUE(absl::IsNotFound(DetachRun(*database_, "missing")));
}

TEST_F(RunTableTest, UpdatesOfADeletedRunAreRemovedAndTheirNumbersNotReused) {
  Insert("a");
  Insert("b");
  ASSERT_TRUE(DetachRun(*database_, "b").ok());
  EXPECT_EQ(Updates(0).size(), 1u);
  EXPECT_EQ(Insert("b").update_seq, 3u);
}

TEST_F(RunTableTest, RemovesLeftoversUpToALimit) {
  Insert("a");
  ASSERT_TRUE(database_
                  ->Execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT "
                            "x + 1 FROM n WHERE x < 25) INSERT INTO "
                            "episode_rows SELECT 1, x, x, 0, 0, 0, 0, 0, NULL, "
                            "NULL, NULL, NULL FROM n")
                  .ok());
  ASSERT_TRUE(DetachRun(*database_, "a").ok());
  EXPECT_EQ(*RemoveLeftoverRows(*database_, 10), 10u);
  EXPECT_EQ(*database_->ReadInt("SELECT min(seq_id) FROM episode_rows"), 11);
  EXPECT_EQ(*RemoveLeftoverRows(*database_, 10), 10u);
  EXPECT_EQ(*RemoveLeftoverRows(*database_, 10), 6u);  // including the run
  EXPECT_EQ(*RemoveLeftoverRows(*database_, 10), 0u);
  EXPECT_EQ(*database_->ReadInt("SELECT count(*) FROM detached_runs"), 0);
}

}  // namespace
}  // namespace tandem::slow_lane

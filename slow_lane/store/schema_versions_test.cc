#include "slow_lane/store/schema_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "slow_lane/store/event_store.h"
#include "slow_lane/store/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::HasSubstr;

constexpr Migration kFirst = "CREATE TABLE a (x); INSERT INTO a VALUES (7)";
constexpr Migration kSecond = "ALTER TABLE a ADD COLUMN y DEFAULT 8";
constexpr Migration kBroken = "CREATE TABLE b (x); SELECT nonsense";

class SchemaVersionsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::Open(path_, {});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }

  absl::Status Migrate(const std::vector<Migration>& migrations) {
    return BringUpToDate(*database_, migrations);
  }

  int64_t Read(const char* sql) {
    auto value = database_->ReadInt(sql);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : -1;
  }

  TestFolder folder_;
  const std::string path_ = folder_.File("tandem.db");
  std::unique_ptr<Database> database_;
};

TEST_F(SchemaVersionsTest, AnEmptyFileGetsAllMigrations) {
  ASSERT_TRUE(Migrate({kFirst, kSecond}).ok());
  EXPECT_EQ(Read("SELECT x + y FROM a"), 15);
  EXPECT_EQ(Read("PRAGMA user_version"), 2);
  EXPECT_EQ(Read("PRAGMA application_id"), kApplicationId);
}

TEST_F(SchemaVersionsTest, AnOlderFileGetsThoseItLacksAndKeepsItsRows) {
  ASSERT_TRUE(Migrate({kFirst}).ok());
  ASSERT_TRUE(database_->Execute("UPDATE a SET x = 1").ok());
  ASSERT_TRUE(Migrate({kFirst, kSecond}).ok());
  ASSERT_TRUE(Migrate({kFirst, kSecond}).ok());
  EXPECT_EQ(Read("SELECT x + y FROM a"), 9);
}

TEST_F(SchemaVersionsTest, AMigrationThatFailsLeavesTheVersionBefore) {
  const absl::Status status = Migrate({kFirst, kBroken});
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Read("PRAGMA user_version"), 1);
  EXPECT_EQ(Read("SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);
  EXPECT_FALSE(database_->InTransaction());
  EXPECT_TRUE(Migrate({kFirst, kSecond}).ok());
}

TEST_F(SchemaVersionsTest, ANewerFileIsRefusedAndLeftAlone) {
  ASSERT_TRUE(Migrate({kFirst, kSecond}).ok());
  const absl::Status status = Migrate({kFirst});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 1 or older"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("found version 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  EXPECT_EQ(Read("PRAGMA user_version"), 2);

  ASSERT_TRUE(database_->Execute("PRAGMA user_version = 999").ok());
  database_ = nullptr;
  const absl::Status opened = EventStore::Open(path_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
}

TEST_F(SchemaVersionsTest, AnotherProgramsFileIsRefusedAndLeftAlone) {
  ASSERT_TRUE(database_->Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status status = EventStore::Open(path_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Read("SELECT count(*) FROM sqlite_schema"), 1);
  auto mode = database_->Prepare("PRAGMA journal_mode");
  ASSERT_TRUE(*mode->Step());
  EXPECT_EQ(mode->Text(0), "delete");
}

// Released migrations never change: files out there have them behind them.
TEST_F(SchemaVersionsTest, VersionOneIsAsItWas) {
  ASSERT_GE(AllMigrations().size(), 1u);
  ASSERT_TRUE(BringUpToDate(*database_, AllMigrations().first(1)).ok());
  auto tables = database_->Prepare(
      "SELECT m.name, group_concat(c.name, ' ') FROM sqlite_schema AS m, "
      "pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT "
      "LIKE 'sqlite_%' GROUP BY m.name ORDER BY m.name");
  ASSERT_TRUE(tables.ok()) << tables.status();
  std::string found;
  while (*tables->Step()) {
    found += std::string(tables->Text(0)) + ": " +
             std::string(tables->Text(1)) + "\n";
  }
  EXPECT_EQ(found, R"(detached_runs: run
episode_rows: run seq_id source_number worker_id episode_index total_reward steps terminated truncated metadata_json timestamp_ns agent_id
lifecycle_rows: run seq_id source_number worker_id event payload_json timestamp_ns
malformed_rows: run seq_id source_number worker_id byte_offset bytes reason head
positions: run byte_offset steps episodes lifecycle malformed text_lines
run_updates: seq_id run status failure_reason gpu_slots at_ns
runs: run run_id run_name config_json digest token status failure_reason gpu_slots created_at_ns updated_at_ns update_seq cancel_requested proxy_starts worker_pid worker_start_time worker_boot_id last_beat_at_ns
sources: run worker_id steps episodes lifecycle malformed
step_rows: run seq_id source_number worker_id episode_index step_index action_json observation_json reward terminated truncated timestamp_ns policy_label backend agent_id render_hint_json frame_ref payload_version render_payload_json episode_seed
)");
}

}  // namespace
}  // namespace tandem::slow_lane

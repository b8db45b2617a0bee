#include "slow_lane/store/schema_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/testing/store_testing.h"

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

  absl::Status Migrate(absl::Span<const Migration> migrations) {
    return BringUpToDate(*database_, migrations,
                         [](int64_t) { return absl::OkStatus(); });
  }

  // Returns the tables for which `condition` holds, a line with columns each.
  std::string Tables(const std::string& condition) {
    auto tables = database_->Prepare(absl::StrCat(
        "SELECT m.name, group_concat(c.name, ' ') FROM sqlite_schema AS m, "
        "pragma_table_info(m.name) AS c WHERE m.type = 'table' AND ",
        condition, " GROUP BY m.name ORDER BY m.name"));
    EXPECT_TRUE(tables.ok()) << tables.status();
    std::string found;
    while (tables.ok() && *tables->Step()) {
      absl::StrAppend(&found, tables->Text(0), ": ", tables->Text(1), "\n");
    }
    return found;
  }

  // Makes a file of version 1: two runs, `rows` rows in each of their streams.
  void FillVersion1(int rows) {
    ASSERT_TRUE(Migrate(AllMigrations().first(1)).ok());
    for (const char* run : {"1, 'a'", "2, 'b'"}) {
      const absl::Status status = database_->Execute(absl::StrCat(
          "INSERT INTO runs VALUES (", run,
          ", 'name', '{}', 'd', 't', 4, NULL, '[]', 0, 0, 0, 0, 0, 0, 0, '', "
          "0)"));
      ASSERT_TRUE(status.ok()) << status;
    }
    // Every column differs from its neighbours, and some are NULL.
    const absl::Status status = database_->Execute(absl::StrCat(
        "CREATE TEMP TABLE n AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
        "SELECT x + 1 FROM n WHERE x < ",
        rows,
        ") SELECT x FROM n;"
        "INSERT INTO step_rows SELECT run, x, x + 1, 'w' || x, x + 2, x + 3, "
        "'a' || x, nullif('o' || x, 'o3'), nullif(x / 4.0, 2.5), x % 2, "
        "x % 3 = 0, nullif(x + 4, 11), 'p' || x, 'b' || x, 'g' || x, "
        "'h' || x, 'f' || x, x + 5, nullif('r' || x, 'r4'), x + 6 FROM runs, n;"
        "INSERT INTO episode_rows SELECT run, x, x + 1, 'w' || x, x + 2, "
        "x / 4.0, x + 3, x % 2, x % 3 = 0, 'm' || x, nullif(x + 4, 7), "
        "'g' || x FROM runs, n;"
        "INSERT INTO lifecycle_rows SELECT run, x, x + 1, 'w' || x, 'e' || x, "
        "nullif('p' || x, 'p2'), x + 2 FROM runs, n;"
        "INSERT INTO malformed_rows SELECT run, x, x + 1, 'w' || x, x + 2, "
        "x + 3, 'r' || x, 'h' || x FROM runs, n;"
        "DROP TABLE n"));
    ASSERT_TRUE(status.ok()) << status;
  }

  // Checks that every row of every view is in `before`, with equal columns.
  void ExpectViewsAsIn(const std::string& before, int rows) {
    const absl::Status attached =
        database_->Execute(absl::StrCat("ATTACH '", before, "' AS before"));
    ASSERT_TRUE(attached.ok()) << attached;
    for (const std::string view :
         {"steps", "episodes", "lifecycle", "malformed"}) {
      auto columns = database_->Prepare(absl::StrCat(
          "SELECT group_concat('a.' || name), group_concat('b.' || name) FROM "
          "pragma_table_info('",
          view, "')"));
      ASSERT_TRUE(columns.ok() && *columns->Step()) << columns.status();
      const std::string same = absl::StrCat(
          "SELECT count(*) FROM main.", view, " AS a JOIN before.", view,
          " AS b ON a.run_id = b.run_id AND a.seq_id = b.seq_id WHERE (",
          columns->Text(0), ") IS (", columns->Text(1), ")");
      EXPECT_EQ(Read(same.c_str()), 2 * rows) << view;
      const std::string all = absl::StrCat("SELECT count(*) FROM main.", view);
      EXPECT_EQ(Read(all.c_str()), 2 * rows) << view;
    }
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

// A million rows: two runs, four streams.
TEST_F(SchemaVersionsTest, VersionTwoHasEveryRowOfVersionOne) {
  constexpr int kRows = 125'000;
  FillVersion1(kRows);
  const std::string before = folder_.File("before.db");
  ASSERT_TRUE(
      database_->Execute(absl::StrCat("VACUUM INTO '", before, "'")).ok());
  ASSERT_TRUE(Migrate(AllMigrations().first(2)).ok());
  ExpectViewsAsIn(before, kRows);
}

TEST_F(SchemaVersionsTest, AWatchedMigrationIsUndoneByTheWatchsError) {
  FillVersion1(20'000);
  int64_t calls = 0;
  const absl::Status status =
      BringUpToDate(*database_, AllMigrations().first(2), [&](int64_t) {
        ++calls;
        return absl::CancelledError("stop");
      });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Read("PRAGMA user_version"), 1);
  EXPECT_EQ(Read("SELECT count(*) FROM steps"), 40'000);
  EXPECT_TRUE(Migrate(AllMigrations()).ok());
  EXPECT_EQ(Read("SELECT count(*) FROM steps"), 40'000);
}

TEST_F(SchemaVersionsTest, NewerFileIsRefusedAndUnchanged) {
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

TEST_F(SchemaVersionsTest, AnotherProgramsFileIsRefusedAndUnchanged) {
  ASSERT_TRUE(database_->Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status status = EventStore::Open(path_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Read("SELECT count(*) FROM sqlite_schema"), 1);
  auto mode = database_->Prepare("PRAGMA journal_mode");
  ASSERT_TRUE(*mode->Step());
  EXPECT_EQ(mode->Text(0), "delete");
}

// Released migrations never change: existing files have already applied them.
TEST_F(SchemaVersionsTest, VersionOneIsUnchanged) {
  ASSERT_GE(AllMigrations().size(), 1u);
  ASSERT_TRUE(Migrate(AllMigrations().first(1)).ok());
  EXPECT_EQ(Tables("m.name NOT LIKE 'sqlite_%'"), R"(detached_runs: run
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

TEST_F(SchemaVersionsTest, VersionTwoIsUnchanged) {
  ASSERT_GE(AllMigrations().size(), 2u);
  ASSERT_TRUE(Migrate(AllMigrations().first(2)).ok());
  EXPECT_EQ(
      Tables("m.name GLOB '*_rows*'"),
      R"(episode_rows: run seq_id source_number episode_index total_reward steps terminated truncated timestamp_ns worker_id agent_id metadata_json
lifecycle_rows: run seq_id source_number timestamp_ns worker_id event payload_json
malformed_rows: run seq_id source_number byte_offset bytes worker_id reason head
step_rows: run seq_id source_number episode_index step_index reward terminated truncated timestamp_ns payload_version episode_seed worker_id agent_id policy_label backend frame_ref action_json observation_json render_hint_json render_payload_json
)");
}

}  // namespace
}  // namespace tandem::slow_lane

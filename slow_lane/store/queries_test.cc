// Runs each query of queries.sql as a user does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class QueriesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_.File("tandem.db");
    auto store = EventStore::Open(path, {});
    ASSERT_TRUE(store.ok()) << store.status();
    for (const char* run_id : {"other", "r"}) {
      ASSERT_TRUE(AddRun(**store, run_id).ok());
      v1::EventBatch batch = Steps(run_id, 1, 4);
      for (auto& step : *batch.mutable_steps()) {
        step.set_observation_json("[1.5,2]");
        step.mutable_timestamp()->set_seconds(
            1'700'000'000 + static_cast<int64_t>(step.seq_id() / 2));
      }
      for (int i = 0; i < 3; ++i) {
        auto& episode = *batch.add_episodes();
        episode.set_episode_index(static_cast<uint64_t>(i));
        episode.set_total_reward(i * 2);
        episode.set_steps(5);
      }
      batch.add_lifecycle()->set_event("run_started");
      batch.add_malformed()->set_reason("no number");
      ASSERT_TRUE(AppendAndWait(**store, batch).ok());
    }
    auto database = Database::Open(path, {.read_only = true});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    std::ifstream file("slow_lane/store/queries.sql");
    std::stringstream text;
    text << file.rdbuf();
    file_ = text.str();
  }

  // Returns the rows of the file's next query, such as "1|2", with :since 2.
  std::vector<std::string> Next(const std::string& before = "") {
    sqlite3_stmt* query = nullptr;
    const std::string sql = before + file_.substr(at_);
    const char* rest = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_->connection(), sql.c_str(), -1,
                                 &query, &rest),
              SQLITE_OK)
        << sqlite3_errmsg(database_->connection()) << ": " << sql;
    if (query == nullptr) return {};
    if (before.empty()) at_ += static_cast<size_t>(rest - sql.c_str());
    sqlite3_bind_text(query, sqlite3_bind_parameter_index(query, ":run_id"),
                      "r", -1, SQLITE_STATIC);
    sqlite3_bind_int(query, sqlite3_bind_parameter_index(query, ":since"), 2);
    std::vector<std::string> rows;
    while (sqlite3_step(query) == SQLITE_ROW) {
      std::vector<std::string> columns;
      for (int i = 0; i < sqlite3_column_count(query); ++i) {
        const auto* value = sqlite3_column_text(query, i);
        columns.emplace_back(
            value == nullptr ? "" : reinterpret_cast<const char*>(value));
      }
      rows.push_back(absl::StrJoin(columns, "|"));
    }
    sqlite3_finalize(query);
    return rows;
  }

  TestFolder folder_;
  std::unique_ptr<Database> database_;
  std::string file_;
  size_t at_ = 0;
};

TEST_F(QueriesTest, EachQueryReturnsItsDocumentedRows) {
  EXPECT_THAT(Next(), testing::SizeIs(2));
  EXPECT_THAT(Next(), ElementsAre("0|5|0.0", "1|5|2.0", "2|5|4.0"));
  EXPECT_THAT(Next(), ElementsAre("0|0.0", "1|1.0", "2|2.0"));
  EXPECT_THAT(Next(), ElementsAre("3|0|3|0.75", "4|0|4|1.0"));
  EXPECT_THAT(Next(), ElementsAre("1|1.5", "2|1.5", "3|1.5", "4|1.5"));
  EXPECT_THAT(Next(),
              ElementsAre("1700000000|1", "1700000001|2", "1700000002|1"));
  EXPECT_THAT(Next(), ElementsAre("1|run_started||"));
  EXPECT_THAT(Next(), ElementsAre("0|0|no number|"));
  EXPECT_THAT(Next(), testing::SizeIs(1));
  EXPECT_EQ(file_.substr(at_), "\n") << "a query that no test knows";
}

// SQLite's plans contain no full scan of a table and no sort.
TEST_F(QueriesTest, TheViewsUseTheKeyOfTheirTable) {
  for (const char* view :
       {"steps", "episodes", "lifecycle", "malformed", "scalars"}) {
    file_ = absl::StrCat("SELECT * FROM ", view,
                         " WHERE run_id = :run_id AND seq_id > :since "
                         "ORDER BY seq_id");
    const std::string plan = absl::StrJoin(Next("EXPLAIN QUERY PLAN "), "\n");
    EXPECT_THAT(plan, HasSubstr("(run=? AND seq_id>?)"));
    EXPECT_THAT(plan, HasSubstr("SEARCH runs"));
    EXPECT_THAT(plan, Not(HasSubstr("SCAN")));
    EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE")));
  }
}

}  // namespace
}  // namespace tandem::slow_lane

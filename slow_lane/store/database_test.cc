#include "slow_lane/store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::HasSubstr;

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::Open(folder_.File("a.db"), {});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }

  TestFolder folder_;
  std::unique_ptr<Database> database_;
};

TEST_F(DatabaseTest, ValuesComeBackAsTheyWere) {
  ASSERT_TRUE(database_->Execute("CREATE TABLE t (a, b, c, d, e, f)").ok());
  auto insert = database_->Prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
  ASSERT_TRUE(insert.ok()) << insert.status();
  constexpr uint64_t kLarge = std::numeric_limits<uint64_t>::max();
  ASSERT_TRUE(insert
                  ->Run(kLarge, 0.1, std::string("a\0b", 3), nullptr,
                        std::nan(""), std::string())
                  .ok());
  auto select = database_->Prepare("SELECT * FROM t");
  ASSERT_TRUE(*select->Step());
  EXPECT_EQ(static_cast<uint64_t>(select->Int(0)), kLarge);
  EXPECT_EQ(select->Real(1), 0.1);
  EXPECT_EQ(select->Text(2), absl::string_view("a\0b", 3));
  EXPECT_TRUE(select->IsNull(3));
  EXPECT_TRUE(std::isnan(select->Real(4)));
  EXPECT_FALSE(select->IsNull(5));
  EXPECT_EQ(select->Text(5), "");
  EXPECT_FALSE(*select->Step());
}

TEST_F(DatabaseTest, ACachedStatementIsPreparedOnce) {
  auto first = database_->Cached("SELECT 1");
  auto again = database_->Cached("SELECT 1");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(*database_->ReadInt("SELECT 7"), 7);
}

TEST_F(DatabaseTest, RolledBackRowsAreGone) {
  ASSERT_TRUE(database_->Execute("CREATE TABLE t (a)").ok());
  ASSERT_TRUE(database_->Begin().ok());
  ASSERT_TRUE(database_->Execute("INSERT INTO t VALUES (1)").ok());
  EXPECT_TRUE(database_->InTransaction());
  database_->Rollback();
  database_->Rollback();
  EXPECT_FALSE(database_->InTransaction());
  EXPECT_EQ(*database_->ReadInt("SELECT count(*) FROM t"), 0);
}

TEST_F(DatabaseTest, MistakeInSqlIsNoStorageFailure) {
  ASSERT_TRUE(
      database_->Execute("CREATE TABLE t (a PRIMARY KEY, b NOT NULL)").ok());
  ASSERT_TRUE(database_->Execute("INSERT INTO t VALUES (1, 1)").ok());
  const absl::Status taken = database_->Execute("INSERT INTO t VALUES (1, 1)");
  const absl::Status null =
      database_->Execute("INSERT INTO t VALUES (2, NULL)");
  const absl::Status nonsense = database_->Execute("SELECT nonsense");
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_TRUE(absl::IsInvalidArgument(null)) << null;
  EXPECT_TRUE(absl::IsInternal(nonsense)) << nonsense;
  EXPECT_THAT(std::string(nonsense.message()), HasSubstr("no such column"));
  EXPECT_THAT(std::string(nonsense.message()), HasSubstr(folder_.path()));
  for (const absl::Status& status : {taken, null, nonsense}) {
    EXPECT_FALSE(IsStorageFailure(status));
  }
}

TEST_F(DatabaseTest, AFullFileIsAStorageFailure) {
  ASSERT_TRUE(database_->Execute("PRAGMA max_page_count = 3").ok());
  ASSERT_TRUE(database_->Execute("CREATE TABLE t (a)").ok());
  const absl::Status full =
      database_->Execute("INSERT INTO t VALUES (randomblob(1000000))");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(IsStorageFailure(full));
}

TEST_F(DatabaseTest, RefusesAFileThatIsNoDatabase) {
  std::ofstream(folder_.File("text")) << std::string(5'000, 'x');
  const absl::Status text = Database::Open(folder_.File("text"), {}).status();
  EXPECT_TRUE(absl::IsDataLoss(text)) << text;
  EXPECT_THAT(std::string(text.message()), HasSubstr(folder_.File("text")));
  const absl::Status folder = Database::Open(folder_.path(), {}).status();
  EXPECT_FALSE(folder.ok());
  EXPECT_THAT(std::string(folder.message()), HasSubstr(folder_.path()));
}

TEST_F(DatabaseTest, ErrorNamesAMissingFolder) {
  const std::string path = folder_.File("nowhere/a.db");
  for (bool read_only : {false, true}) {
    const absl::Status status =
        Database::Open(path, {.read_only = read_only}).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("No such file"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace tandem::slow_lane

#include "slow_lane/store/schema.h"

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

class SchemaTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::Open(path_, {});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
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

TEST_F(SchemaTest, EmptyFileGetsTheTablesOnce) {
  ASSERT_TRUE(MakeOrCheckSchema(*database_).ok());
  ASSERT_TRUE(database_->Execute("INSERT INTO detached_runs VALUES (7)").ok());
  ASSERT_TRUE(MakeOrCheckSchema(*database_).ok());
  EXPECT_EQ(Read("SELECT run FROM detached_runs"), 7);
  EXPECT_EQ(Read("PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(Read("PRAGMA application_id"), kApplicationId);
  EXPECT_FALSE(database_->InTransaction());
}

TEST_F(SchemaTest, FileOfAnotherVersionIsRefusedAndUnchanged) {
  ASSERT_TRUE(MakeOrCheckSchema(*database_).ok());
  for (const int64_t version : {int64_t{0}, kSchemaVersion - 1, int64_t{999}}) {
    ASSERT_TRUE(
        database_->Execute(absl::StrCat("PRAGMA user_version = ", version))
            .ok());
    const absl::Status status = EventStore::Open(path_, {}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("found version ", version)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--data_dir"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    EXPECT_EQ(Read("PRAGMA user_version"), version);
  }
}

TEST_F(SchemaTest, AnotherProgramsFileIsRefusedAndUnchanged) {
  ASSERT_TRUE(database_->Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status status = EventStore::Open(path_, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Read("SELECT count(*) FROM sqlite_schema"), 1);
  auto mode = database_->Prepare("PRAGMA journal_mode");
  ASSERT_TRUE(*mode->Step());
  EXPECT_EQ(mode->Text(0), "delete");
}

}  // namespace
}  // namespace tandem::slow_lane

#include "slow_lane/store/event_columns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

TEST(EventColumns, AStoreAddsColumnsOfFieldsThatItsTableDoesNotHave) {
  const TestFolder folder;
  const std::string path = folder.File("tandem.db");
  const auto open = [&] { return *EventStore::Open(path, {}); };
  {
    const std::unique_ptr<EventStore> store = open();
    ASSERT_TRUE(AddRun(*store, "a").ok());
    ASSERT_TRUE(AppendAndWait(*store, Steps("a", 1, 2)).ok());
  }
  const std::unique_ptr<Database> older = *Database::Open(path, {});
  const absl::Status dropped = older->Execute(
      "DROP VIEW steps; ALTER TABLE step_rows DROP COLUMN frame_ref; "
      "ALTER TABLE step_rows DROP COLUMN episode_seed");
  ASSERT_TRUE(dropped.ok()) << dropped;
  const std::unique_ptr<EventStore> store = open();
  v1::EventBatch sent = Steps("a", 3, 3);
  sent.mutable_steps(0)->set_episode_seed(9);
  sent.mutable_steps(0)->set_frame_ref("f");
  ASSERT_TRUE(AppendAndWait(*store, sent).ok());
  v1::EventBatch got;
  ASSERT_TRUE((*EventReader::Open(path))
                  ->Read("a", Stream::kSteps, 0, {.max_rows = 9}, &got)
                  .ok());
  ASSERT_EQ(got.steps_size(), 3);
  EXPECT_EQ(got.steps(0).episode_seed(), 0U);
  EXPECT_EQ(got.steps(2).episode_seed(), 9U);
  EXPECT_EQ(got.steps(2).frame_ref(), "f");
  EXPECT_EQ(*older->ReadInt("SELECT sum(episode_seed) FROM steps"), 9);
}

}  // namespace
}  // namespace tandem::slow_lane

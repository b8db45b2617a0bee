#include "slow_lane/store/event_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EventStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    auto store = EventStore::Open(path_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Returns all rows of a run's event stream.
  v1::EventBatch ReadAll(const std::string& run_id, Stream stream) {
    auto reader = EventReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    v1::EventBatch batch;
    EXPECT_TRUE((*reader)
                    ->Read(run_id, stream, 0, {.max_rows = 1'000'000}, &batch)
                    .ok());
    return batch;
  }

  // Returns the steps' step_index; checks that their seq_ids have no gap.
  std::vector<uint64_t> StepIndices(const std::string& run_id) {
    std::vector<uint64_t> indices;
    const v1::EventBatch all = ReadAll(run_id, Stream::kSteps);
    for (const auto& step : all.steps()) {
      indices.push_back(step.step_index());
      EXPECT_EQ(step.seq_id(), indices.size());
    }
    return indices;
  }

  TestFolder folder_;
  const std::string path_ = folder_.File("tandem.db");
  std::unique_ptr<EventStore> store_;
};

TEST_F(EventStoreTest, RowsGetTheRunsNextNumbers) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  auto first = AppendAndWait(*store_, Steps("a", 1, 3));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->added[Stream::kSteps], 3u);
  auto second = AppendAndWait(*store_, Steps("a", 4, 5));
  EXPECT_EQ(second->last[Stream::kSteps], 5u);
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EventStoreTest, DuplicatesAreSkippedAndCounted) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 4)).ok());
  auto again = AppendAndWait(*store_, Steps("a", 2, 6));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->added[Stream::kSteps], 2u);
  EXPECT_EQ(again->duplicate[Stream::kSteps], 3u);
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(EventStoreTest, DuplicatesAreKnownAfterARestart) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 4)).ok());
  store_->Close();
  Open();
  auto again = AppendAndWait(*store_, Steps("a", 3, 5));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->duplicate[Stream::kSteps], 2u);
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(EventStoreTest, WorkersAndStreamsAreNumberedSeparately) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch other = Steps("a", 1, 2);
  other.set_worker_id("v");
  other.add_episodes()->set_seq_id(1);
  other.add_lifecycle()->set_seq_id(1);
  other.add_malformed()->set_seq_id(1);
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 2)).ok());
  auto appended = AppendAndWait(*store_, other);
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_EQ(appended->duplicate, Numbers{});
  EXPECT_EQ(appended->last[Stream::kSteps], 4u);
  EXPECT_EQ(appended->last[Stream::kEpisodes], 1u);
  EXPECT_EQ(appended->last[Stream::kLifecycle], 1u);
  EXPECT_EQ(appended->last[Stream::kMalformed], 1u);
  appended = AppendAndWait(*store_, other);
  EXPECT_EQ(appended->duplicate[Stream::kSteps], 2u);
  EXPECT_EQ(appended->duplicate[Stream::kMalformed], 1u);
}

TEST_F(EventStoreTest, EventsWithoutNumbersAreNoDuplicates) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch batch = Steps("a", 7, 7);
  batch.mutable_steps(0)->set_seq_id(0);
  ASSERT_TRUE(AppendAndWait(*store_, batch).ok());
  ASSERT_TRUE(AppendAndWait(*store_, batch).ok());
  EXPECT_THAT(StepIndices("a"), ElementsAre(7, 7));
}

TEST_F(EventStoreTest, ASampledStreamHasGaplessNumbersOfItsOwn) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  for (uint64_t number : {1, 11, 21}) {
    ASSERT_TRUE(AppendAndWait(*store_, Steps("a", number, number)).ok());
  }
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 11, 21));
}

TEST_F(EventStoreTest, RunsAreNumberedSeparately) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AddRun(*store_, "b").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 2)).ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("b", 1, 1)).ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 3, 3)).ok());
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3));
  EXPECT_THAT(StepIndices("b"), ElementsAre(1));
}

TEST_F(EventStoreTest, UnknownRunIsNotFound) {
  auto appended = AppendAndWait(*store_, Steps("missing", 1, 2));
  EXPECT_TRUE(absl::IsNotFound(appended.status())) << appended.status();
  EXPECT_THAT(std::string(appended.status().message()), HasSubstr("missing"));
}

v1::EventBatch Between(v1::EventBatch batch, uint64_t begin, uint64_t end) {
  batch.mutable_begin()->set_offset(begin * 100);
  batch.mutable_begin()->set_steps(begin);
  batch.mutable_end()->set_offset(end * 100);
  batch.mutable_end()->set_steps(end);
  return batch;
}

TEST_F(EventStoreTest, AProxysBatchBeginsWhereTheLastOneEnded) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Between(Steps("a", 1, 4), 0, 4)).ok());
  auto hole = AppendAndWait(*store_, Between(Steps("a", 6, 6), 5, 6));
  EXPECT_TRUE(absl::IsFailedPrecondition(hole.status())) << hole.status();
  EXPECT_THAT(std::string(hole.status().message()), HasSubstr("offset 400"));
  EXPECT_THAT(std::string(hole.status().message()), HasSubstr("offset 500"));
  auto repeat = AppendAndWait(*store_, Between(Steps("a", 1, 4), 0, 4));
  EXPECT_TRUE(absl::IsFailedPrecondition(repeat.status())) << repeat.status();
  ASSERT_TRUE(AppendAndWait(*store_, Between(Steps("a", 5, 6), 4, 6)).ok());
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4, 5, 6));

  auto reader = EventReader::Open(path_);
  auto progress = (*reader)->Progress("a");
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->position.offset(), 600u);
  EXPECT_EQ(progress->position.steps(), 6u);
}

TEST_F(EventStoreTest, PrintedAndPublishedEventsAreNumberedSeparately) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Between(Steps("a", 1, 4), 0, 4)).ok());
  auto published = AppendAndWait(*store_, Steps("a", 1, 6));
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->added[Stream::kSteps], 6u);
  store_->Close();
  Open();
  auto printed = AppendAndWait(*store_, Between(Steps("a", 5, 6), 4, 6));
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(printed->added[Stream::kSteps], 2u);
  // Published numbers are still known.
  published = AppendAndWait(*store_, Steps("a", 5, 7));
  EXPECT_EQ(published->duplicate[Stream::kSteps], 2u);
  EXPECT_THAT(StepIndices("a"),
              ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 5, 6, 7));
}

TEST_F(EventStoreTest, APositionOutlivesTheStore) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Between(Steps("a", 1, 4), 0, 4)).ok());
  store_->Close();
  Open();
  EXPECT_FALSE(AppendAndWait(*store_, Between(Steps("a", 1, 4), 0, 4)).ok());
  EXPECT_TRUE(AppendAndWait(*store_, Between(Steps("a", 5, 6), 4, 6)).ok());
}

TEST_F(EventStoreTest, ABatchThatContradictsItselfIsRefused) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch only_end = Steps("a", 1, 1);
  only_end.mutable_end()->set_offset(1);
  v1::EventBatch backwards = Between(Steps("a", 1, 1), 0, 0);
  backwards.mutable_begin()->set_text_lines(1);
  for (const v1::EventBatch& batch : {only_end, backwards}) {
    auto appended = AppendAndWait(*store_, batch);
    EXPECT_TRUE(absl::IsInvalidArgument(appended.status()))
        << appended.status();
  }
  EXPECT_THAT(StepIndices("a"), ElementsAre());
}

// Blocks the store's thread in a change until Release.
class Held {
 public:
  explicit Held(EventStore& store) {
    store.Post(
        [this](Database&) {
          entered_.set_value();
          released_.get_future().wait();
          return absl::OkStatus();
        },
        [](const absl::Status&) {});
    entered_.get_future().wait();
  }
  void Release() { released_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> released_;
};

TEST_F(EventStoreTest, QueuedItemsAreCommittedTogether) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  std::vector<std::string> seen;
  std::promise<void> last;
  Held held(*store_);
  for (uint64_t number = 1; number <= 50; ++number) {
    store_->Append(
        std::make_shared<const v1::EventBatch>(Steps("a", number, number)),
        [&, number](const absl::StatusOr<Appended>& appended) {
          // The first answer comes when all items are on the disk.
          if (number == 1) {
            seen.push_back(absl::StrCat(StepIndices("a").size()));
          }
          if (!appended.ok()) seen.push_back(appended.status().ToString());
          if (number == 50) last.set_value();
        });
  }
  held.Release();
  last.get_future().wait();
  EXPECT_THAT(seen, ElementsAre("50"));
}

TEST_F(EventStoreTest, FailingItemLeavesOthersCommitted) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  std::promise<void> last;
  std::vector<bool> ok;
  Held held(*store_);
  auto append = [&](v1::EventBatch batch) {
    store_->Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
                   [&](const absl::StatusOr<Appended>& appended) {
                     ok.push_back(appended.ok());
                   });
  };
  append(Steps("a", 1, 2));
  append(Steps("missing", 1, 2));
  append(Between(Steps("a", 3, 4), 7, 8));
  store_->Post(
      [](Database& database) {
        // Makes a change, which is undone.
        auto status = database.Execute("DELETE FROM step_rows");
        return status.ok() ? absl::OutOfRangeError("no") : status;
      },
      [&](const absl::Status& status) { ok.push_back(status.ok()); });
  store_->Post(
      [](Database& database) { return database.Execute("SELECT nonsense"); },
      [&](const absl::Status& status) { ok.push_back(status.ok()); });
  append(Steps("a", 3, 4));
  store_->Post([](Database&) { return absl::OkStatus(); },
               [&](const absl::Status&) { last.set_value(); });
  held.Release();
  last.get_future().wait();
  EXPECT_THAT(ok, ElementsAre(true, false, false, false, false, true));
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(store_->state().ok());
}

TEST_F(EventStoreTest, OnlyTheFailedBatchIsUndone) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(PostAndWait(*store_, [](Database& database) {
                return database.Execute(
                    "CREATE TRIGGER picky BEFORE INSERT ON step_rows WHEN "
                    "new.reward = 13 BEGIN SELECT RAISE(ABORT, 'no'); END");
              }).ok());
  v1::EventBatch bad = Between(Steps("a", 3, 9), 2, 9);
  bad.mutable_steps(4)->set_reward(13);
  std::vector<bool> ok;
  std::promise<void> last;
  Held held(*store_);
  for (const v1::EventBatch& batch :
       {Between(Steps("a", 1, 2), 0, 2), bad, Between(Steps("a", 3, 4), 2, 4),
        bad, Between(Steps("a", 5, 6), 4, 6)}) {
    store_->Append(std::make_shared<const v1::EventBatch>(batch),
                   [&](const absl::StatusOr<Appended>& appended) {
                     ok.push_back(appended.ok());
                     if (ok.size() == 5) last.set_value();
                   });
  }
  held.Release();
  last.get_future().wait();
  EXPECT_THAT(ok, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(EventStoreTest, ListenerIsCalledForDurableRowsBeforeTheSender) {
  std::vector<std::string> seen;
  store_->SetListener([&](const std::string& run_id, const Numbers& last,
                          uint64_t printed_steps) {
    seen.push_back(absl::StrCat(run_id, " ", last[Stream::kSteps], " of ",
                                StepIndices(run_id).size(), ", ", printed_steps,
                                " printed"));
  });
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 2)).ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 2)).ok());  // no new rows
  // Seven more steps were printed; one of them is kept.
  ASSERT_TRUE(AppendAndWait(*store_, Between(Steps("a", 7, 7), 0, 7)).ok());
  v1::EventBatch none;
  none.set_run_id("a");
  ASSERT_TRUE(AppendAndWait(*store_, Between(none, 7, 9)).ok());
  EXPECT_THAT(seen, ElementsAre("a 2 of 2, 0 printed", "a 3 of 3, 7 printed",
                                "a 3 of 3, 9 printed"));
}

TEST_F(EventStoreTest, HasRoomBelowTheQueueLimit) {
  store_->Close();
  auto opened = EventStore::Open(path_, {.max_queued_bytes = 10'000});
  store_ = *std::move(opened);
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  EXPECT_TRUE(store_->HasRoom());
  Held held(*store_);
  v1::EventBatch big = Steps("a", 1, 1);
  big.mutable_steps(0)->set_observation_json(std::string(20'000, 'x'));
  store_->Append(std::make_shared<const v1::EventBatch>(big),
                 [](const absl::StatusOr<Appended>&) {});
  EXPECT_FALSE(store_->HasRoom());
  EXPECT_GT(store_->queued_bytes(), 20'000u);
  held.Release();
  WaitForRoom(*store_);
  EXPECT_EQ(store_->queued_bytes(), 0u);
}

TEST_F(EventStoreTest, CloseCommitsQueuedItemsAndRefusesLaterOnes) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  std::atomic<int> ok{0};
  for (uint64_t number = 1; number <= 100; ++number) {
    store_->Append(
        std::make_shared<const v1::EventBatch>(Steps("a", number, number)),
        [&](const absl::StatusOr<Appended>& appended) { ok += appended.ok(); });
  }
  store_->Close();
  store_->Close();
  EXPECT_EQ(ok, 100);
  EXPECT_EQ(StepIndices("a").size(), 100u);
  auto late = AppendAndWait(*store_, Steps("a", 101, 101));
  EXPECT_TRUE(absl::IsCancelled(late.status())) << late.status();
  EXPECT_TRUE(absl::IsCancelled(store_->state()));
}

TEST_F(EventStoreTest, EachFieldComesBackAsItWas) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch sent;
  sent.set_run_id("a");
  sent.set_worker_id("w");
  gymgui::trainer::RunStep& step = *sent.add_steps();
  step.set_run_id("a");
  step.set_episode_index(1);
  step.set_step_index(std::numeric_limits<uint64_t>::max());
  step.set_action_json("[1]");
  step.set_observation_json(std::string("\0\xC3\xA4", 3));
  step.set_reward(-0.1);
  step.set_terminated(true);
  step.set_truncated(true);
  step.mutable_timestamp()->set_seconds(-5);
  step.mutable_timestamp()->set_nanos(999'999'999);
  step.set_policy_label("p");
  step.set_backend("b");
  step.set_seq_id(1);
  step.set_agent_id("agent");
  step.set_render_hint_json("{}");
  step.set_frame_ref("f");
  step.set_payload_version(7);
  step.set_render_payload_json("[]");
  step.set_episode_seed(uint64_t{1} << 63);
  step.set_worker_id("w2");
  gymgui::trainer::RunEpisode& episode = *sent.add_episodes();
  episode.set_run_id("a");
  episode.set_episode_index(3);
  episode.set_total_reward(std::numeric_limits<double>::infinity());
  episode.set_steps(4);
  episode.set_truncated(true);
  episode.set_metadata_json("{\"m\":1}");
  episode.mutable_timestamp()->set_seconds(1'700'000'000);
  episode.mutable_timestamp()->set_nanos(1);
  episode.set_seq_id(1);
  episode.set_agent_id("agent");
  episode.set_worker_id("w");
  v1::LifecycleEvent& event = *sent.add_lifecycle();
  event.set_seq_id(1);
  event.set_event("run_started");
  event.set_payload_json("{\"a\":2}");
  event.mutable_timestamp()->set_seconds(1'700'000'001);
  event.set_worker_id("w");
  v1::MalformedLine& line = *sent.add_malformed();
  line.set_seq_id(1);
  line.set_offset(77);
  line.set_length(8);
  line.set_reason("expected a number");
  line.set_head("{\"step\":x");
  AddScalars(std::numeric_limits<uint64_t>::max(),
             {0.1, std::nan(""), -HUGE_VAL}, &sent);
  sent.mutable_scalars(0)->set_seq_id(1);
  auto appended = AppendAndWait(*store_, sent);
  ASSERT_TRUE(appended.ok()) << appended.status();

  v1::EventBatch got;
  auto reader = EventReader::Open(path_);
  for (Stream stream : kAllStreams) {
    auto rows = (*reader)->Read("a", stream, 0, {}, &got);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, 1u);
  }
  sent.clear_run_id();
  sent.clear_worker_id();
  EXPECT_EQ(got.DebugString(), sent.DebugString());
}

TEST_F(EventStoreTest, AnEmptyEventComesBackEmptyAndNanAsNan) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch sent;
  sent.set_run_id("a");
  sent.add_steps();
  sent.add_steps()->set_reward(std::nan(""));
  ASSERT_TRUE(AppendAndWait(*store_, sent).ok());
  v1::EventBatch got = ReadAll("a", Stream::kSteps);
  ASSERT_EQ(got.steps_size(), 2);
  EXPECT_TRUE(std::isnan(got.steps(1).reward()));
  EXPECT_EQ(got.steps(0).DebugString(), "run_id: \"a\"\nseq_id: 1\n");
}

TEST_F(EventStoreTest, ALineOfSixteenMebibytesIsARow) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  v1::EventBatch sent = Steps("a", 1, 3);
  sent.mutable_steps(1)->set_observation_json(
      std::string(size_t{16} << 20, '7'));
  ASSERT_TRUE(AppendAndWait(*store_, sent).ok());
  v1::EventBatch got = ReadAll("a", Stream::kSteps);
  ASSERT_EQ(got.steps_size(), 2);  // the reader limits the bytes of a batch
  EXPECT_EQ(got.steps(1).observation_json(), sent.steps(1).observation_json());
}

TEST_F(EventStoreTest, ADeletedRunIsGoneAtOnceAndItsRowsSoon) {
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AddRun(*store_, "b").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 7'000)).ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("b", 1, 5)).ok());
  std::promise<absl::Status> done;
  store_->DeleteRun(
      "a", [&](const absl::Status& status) { done.set_value(status); });
  ASSERT_TRUE(done.get_future().get().ok());
  EXPECT_TRUE(
      absl::IsNotFound(AppendAndWait(*store_, Steps("a", 1, 1)).status()));
  // A new run of that name starts from 1, although old rows may be left.
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  ASSERT_TRUE(AppendAndWait(*store_, Steps("a", 1, 2)).ok());
  EXPECT_THAT(StepIndices("a"), ElementsAre(1, 2));
  EXPECT_EQ(StepIndices("b").size(), 5u);
  int64_t rows = 0;
  do {
    ASSERT_TRUE(PostAndWait(*store_, [&](Database& database) {
                  auto count =
                      database.ReadInt("SELECT count(*) FROM step_rows");
                  if (count.ok()) rows = *count;
                  return count.status();
                }).ok());
  } while (rows > 7);
  EXPECT_EQ(rows, 7);

  std::promise<absl::Status> again;
  store_->DeleteRun(
      "missing", [&](const absl::Status& status) { again.set_value(status); });
  EXPECT_TRUE(absl::IsNotFound(again.get_future().get()));
}

}  // namespace
}  // namespace tandem::slow_lane

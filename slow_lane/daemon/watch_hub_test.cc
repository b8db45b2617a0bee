#include "slow_lane/daemon/watch_hub.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/run_table.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::ControlEvent;

// A watcher that receives a block, and acknowledges it when the test says so.
class TestSink final : public EventSink {
 public:
  void Send(std::shared_ptr<const v1::EventBatch> block) override {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(std::move(block));
    changed_.notify_all();
  }
  void End(const absl::Status& status) override {
    const std::lock_guard lock(mutex_);
    end_ = status;
    changed_.notify_all();
  }

  // Blocks; the test's time limit is the watchdog.
  std::shared_ptr<const v1::EventBatch> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !blocks_.empty(); });
    auto block = std::move(blocks_.front());
    blocks_.pop_front();
    return block;
  }
  absl::Status WaitForEnd() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return end_.has_value(); });
    return *end_;
  }
  bool HasBlock() {
    const std::lock_guard lock(mutex_);
    return !blocks_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const v1::EventBatch>> blocks_;
  std::optional<absl::Status> end_;
};

// A sink whose client is gone before the first record is written.
class GoneUpdateSink final : public UpdateSink {
 public:
  void Send(std::vector<RunRow> runs) override {
    (is_first_ ? runs_ : updates_) += runs.size();
    is_first_ = false;
  }
  void End(const absl::Status& status) override { end_ = status; }

  // Used by the hub's thread; the test reads it after Settle.
  bool is_first_ = true;
  size_t runs_ = 0;     // of the first Send
  size_t updates_ = 0;  // of the others
  std::optional<absl::Status> end_;
};

class TestControl final : public ControlSink {
 public:
  void Send(const ControlEvent& event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event.has_pause() ? "starved" : "resumed");
  }
  std::vector<std::string> sent() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;
};

class WatchHubTest : public ::testing::Test {
 protected:
  WatchHubTest() {
    const std::string path =
        ::testing::TempDir() + "/" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".db";
    for (const char* ending : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path + ending);
    }
    store_ = *EventStore::Open(path, {.full_sync = false});
    hub_.emplace(*EventReader::Open(path));
    store_->SetListener(
        [this](const std::string& run_id, const Numbers& last,
               uint64_t /*printed_steps*/) { hub_->Committed(run_id, last); });
    Wait([this](auto done) {
      store_->Post(
          [](Database& database) {
            RunRow row;
            row.run_id = "run";
            row.config_json = "{}";
            row.token = "token";
            return InsertRun(database, &row);
          },
          std::move(done));
    });
  }
  ~WatchHubTest() override {
    hub_->EndAll();
    store_->Close();
    hub_->Stop();
  }

  // Commits `count` more steps.
  void Append(int count) {
    auto batch = std::make_shared<v1::EventBatch>();
    batch->set_run_id("run");
    for (int i = 0; i < count; ++i) {
      batch->add_steps()->set_step_index(appended_++);
    }
    Wait([&](auto done) {
      store_->Append(batch, [done = std::move(done)](
                                const absl::StatusOr<Appended>& a) mutable {
        done(a.status());
      });
    });
  }

  WatchHub::Id Add(uint64_t since, bool follow, EventSink* sink) {
    WatchHub::Watch watch;
    watch.run_id = "run";
    watch.since[Stream::kSteps] = since;
    watch.follow = follow;
    watch.control_key = "key";
    const WatchHub::Id id = hub_->NewId();
    hub_->Add(id, std::move(watch), ended_, sink);
    return id;
  }

  // Waits until the hub has done all posted work.
  void Settle() {
    Wait([this](auto done) {
      hub_->Read([done = std::move(done)](EventReader&) mutable {
        done(absl::OkStatus());
      });
    });
  }

  template <typename Begin>
  void Wait(Begin begin) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::Status> result;
    begin([&](const absl::Status& status) {
      const std::lock_guard lock(mutex);
      result = status;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return result.has_value(); });
    ASSERT_TRUE(result->ok()) << *result;
  }

  // These outlive the hub's thread, which ends the remaining watches.
  TestSink sink_;
  TestSink other_;
  GoneUpdateSink gone_;
  TestControl control_;
  std::unique_ptr<EventStore> store_;
  std::optional<WatchHub> hub_;
  bool ended_ = false;
  uint64_t appended_ = 0;
};

TEST_F(WatchHubTest, SendsDurableRowsThenNewOnesThenEnds) {
  Append(3);
  const WatchHub::Id id = Add(1, true, &sink_);
  const auto first = sink_.Next();
  ASSERT_EQ(first->steps_size(), 2);
  EXPECT_EQ(first->steps(0).seq_id(), 2u);
  hub_->Sent(id);
  Append(1);
  EXPECT_EQ(sink_.Next()->steps(0).seq_id(), 4u);
  hub_->Sent(id);
  hub_->RunEnded("run");
  EXPECT_TRUE(sink_.WaitForEnd().ok());
}

TEST_F(WatchHubTest, EndsWithoutFollowAtTheFirstDurableRows) {
  Append(3);
  const WatchHub::Id id = Add(0, false, &sink_);
  EXPECT_EQ(sink_.Next()->steps_size(), 3);
  Append(5);
  hub_->Sent(id);
  EXPECT_TRUE(sink_.WaitForEnd().ok());
  EXPECT_FALSE(sink_.HasBlock());
}

TEST_F(WatchHubTest, QueuesOneBlockForASlowWatcher) {
  const WatchHub::Id slow_id = Add(0, true, &sink_);
  const WatchHub::Id quick_id = Add(0, true, &other_);
  Append(1);
  EXPECT_EQ(sink_.Next()->steps_size(), 1);
  for (uint64_t seq = 1; seq <= 20; ++seq) {
    EXPECT_EQ(other_.Next()->steps(0).seq_id(), seq);
    hub_->Sent(quick_id);
    if (seq < 20) Append(1);
  }
  // The watcher has not acknowledged the block: it gets no other one.
  EXPECT_FALSE(sink_.HasBlock());
  hub_->Sent(slow_id);
  const auto rest = sink_.Next();
  ASSERT_EQ(rest->steps_size(), 19);
  EXPECT_EQ(rest->steps(0).seq_id(), 2u);
}

TEST_F(WatchHubTest, EndsAWatchOfAnUnknownRun) {
  WatchHub::Watch watch;
  watch.run_id = "another";
  hub_->Add(hub_->NewId(), watch, false, &sink_);
  EXPECT_TRUE(absl::IsNotFound(sink_.WaitForEnd()));
}

TEST_F(WatchHubTest, RemovesDisconnectedWatcher) {
  const WatchHub::Id id = Add(0, true, &sink_);
  hub_->Remove(id);
  EXPECT_TRUE(absl::IsCancelled(sink_.WaitForEnd()));
  Append(1);
  Settle();
  EXPECT_FALSE(sink_.HasBlock());
  EXPECT_EQ(hub_->watchers(), 0u);
}

TEST_F(WatchHubTest, ForgetsAWatcherOfRunsWithoutItsFirstRecord) {
  const WatchHub::Id id = hub_->NewId();
  hub_->AddUpdates(id, 0, &gone_);
  hub_->Remove(id);
  Settle();
  EXPECT_EQ(gone_.runs_, 1u);
  ASSERT_TRUE(gone_.end_.has_value());
  EXPECT_TRUE(absl::IsCancelled(*gone_.end_));
  EXPECT_EQ(hub_->watchers(), 0u);
}

TEST_F(WatchHubTest, SendsRunsAsTheyAreOnlyOnceAndThenTheirChanges) {
  const WatchHub::Id id = hub_->NewId();
  hub_->AddUpdates(id, 0, &gone_);
  hub_->Sent(id);
  Settle();
  EXPECT_EQ(gone_.runs_, 1u);
  EXPECT_EQ(gone_.updates_, 0u);
  hub_->AddUpdates(hub_->NewId(), 1, &gone_);
  Settle();
  EXPECT_EQ(gone_.updates_, 0u);
}

TEST_F(WatchHubTest, SendsLargeRowsOfTwoStreamsOneAfterTheOther) {
  auto batch = std::make_shared<v1::EventBatch>();
  batch->set_run_id("run");
  batch->add_steps()->set_observation_json(std::string(5 << 20, '1'));
  batch->add_episodes()->set_metadata_json(std::string(5 << 20, '1'));
  Wait([&](auto done) {
    store_->Append(batch, [done = std::move(done)](
                              const absl::StatusOr<Appended>& a) mutable {
      done(a.status());
    });
  });
  const WatchHub::Id id = Add(0, true, &sink_);
  const auto first = sink_.Next();
  EXPECT_EQ(first->steps_size(), 0);
  EXPECT_EQ(first->episodes_size(), 1);
  hub_->Sent(id);
  const auto second = sink_.Next();
  EXPECT_EQ(second->steps_size(), 1);
  EXPECT_EQ(second->episodes_size(), 0);
}

TEST_F(WatchHubTest, ScalarsCostCreditsAsStepsDo) {
  hub_->Grant("key", "run", 0, &control_);
  v1::EventBatch batch;
  batch.set_run_id("run");
  for (int i = 0; i < 150; ++i) {
    v1::Scalars& event = *batch.add_scalars();
    event.add_names("loss");
    event.add_values(i);
  }
  Wait([&](auto done) {
    store_->Append(
        std::make_shared<v1::EventBatch>(batch),
        [done = std::move(done)](const absl::StatusOr<Appended>& a) mutable {
          done(a.status());
        });
  });
  Append(500);
  const WatchHub::Id id = Add(0, true, &sink_);
  const auto block = sink_.Next();
  EXPECT_EQ(block->scalars_size(), 150);
  EXPECT_EQ(block->steps_size(), 40);
  hub_->Remove(id);
}

TEST_F(WatchHubTest, SendsAsManyStepsAsThereAreCredits) {
  hub_->Grant("key", "run", 0, &control_);
  Append(500);
  const WatchHub::Id id = Add(0, true, &sink_);
  // At ten credits the hub reports STARVED, and still sends those ten.
  EXPECT_EQ(sink_.Next()->steps_size(), 190);
  EXPECT_TRUE(control_.sent().empty());
  hub_->Sent(id);
  EXPECT_EQ(sink_.Next()->steps_size(), 10);
  EXPECT_THAT(control_.sent(), ::testing::ElementsAre("starved"));
  hub_->Sent(id);
  Settle();
  EXPECT_FALSE(sink_.HasBlock());
  hub_->Grant("key", "run", 5, &control_);
  EXPECT_EQ(sink_.Next()->steps_size(), 5);
  hub_->Sent(id);
  hub_->Grant("key", "run", 40, &control_);
  EXPECT_EQ(sink_.Next()->steps_size(), 30);
  EXPECT_THAT(control_.sent(), ::testing::ElementsAre("starved", "resumed"));
}

TEST_F(WatchHubTest, FreesAWatcherWhoseControlStreamEnded) {
  hub_->Grant("key", "run", 0, &control_);
  Append(500);
  const WatchHub::Id id = Add(0, true, &sink_);
  EXPECT_EQ(sink_.Next()->steps_size(), 190);
  Wait([&](auto done) {
    hub_->RemoveControl(&control_, [done = std::move(done)]() mutable {
      done(absl::OkStatus());
    });
  });
  hub_->Sent(id);
  EXPECT_EQ(sink_.Next()->steps_size(), 310);
}

TEST_F(WatchHubTest, EndsAllWhenTheDaemonStops) {
  Add(0, true, &sink_);
  hub_->EndAll();
  EXPECT_TRUE(absl::IsUnavailable(sink_.WaitForEnd()));
  Add(0, true, &other_);
  EXPECT_TRUE(absl::IsUnavailable(other_.WaitForEnd()));
}

}  // namespace
}  // namespace tandem::slow_lane

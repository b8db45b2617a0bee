// The store under many threads, for ThreadSanitizer.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

constexpr int kThreads = 4;
constexpr uint64_t kBatches = 50;
constexpr uint64_t kBatchRows = 40;

TEST(EventStoreThreads, ReaderBesideWritersSeesEachRowOnceInOrder) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto opened = EventStore::Open(
      path, {.max_queued_bytes = 50'000, .checkpoint_bytes = 1 << 18});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EventStore& store = **opened;
  std::mutex mutex;
  absl::flat_hash_map<std::string, uint64_t> durable;  // guarded by mutex
  store.SetListener(
      [&](const std::string& run_id, const Numbers& last, uint64_t) {
        const std::lock_guard<std::mutex> lock(mutex);
        durable[run_id] = last[Stream::kSteps];
      });
  std::atomic<int> failed{0};
  auto write = [&](const std::string& run_id) {
    failed += !AddRun(store, run_id).ok();
    for (uint64_t i = 0; i < kBatches; ++i) {
      WaitForRoom(store);
      store.Append(std::make_shared<const v1::EventBatch>(
                       Steps(run_id, i * kBatchRows + 1, (i + 1) * kBatchRows)),
                   [&](const absl::StatusOr<Appended>& appended) {
                     failed += !appended.ok();
                   });
      failed += !store.state().ok();
    }
  };
  // Reads at least the rows that the listener has reported.
  auto read = [&](const std::string& run_id) {
    auto reader = EventReader::Open(path);
    if (!reader.ok()) {
      ++failed;
      return;
    }
    uint64_t since = 0;
    while (since < kBatches * kBatchRows) {
      uint64_t there;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        there = durable[run_id];
      }
      if (there <= since) {
        std::this_thread::yield();
        continue;
      }
      v1::EventBatch batch;
      auto rows = (*reader)->Read(run_id, Stream::kSteps, since, {}, &batch);
      if (!rows.ok() || since + *rows < std::min(there, since + 1'000)) {
        ++failed;
        return;
      }
      for (const auto& step : batch.steps()) {
        failed += step.seq_id() != ++since || step.step_index() != since;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(write, absl::StrCat("run", i));
    threads.emplace_back(read, absl::StrCat("run", i));
  }
  // Runs are added and deleted meanwhile.
  threads.emplace_back([&] {
    for (int i = 0; i < 20; ++i) {
      failed += !AddRun(store, "passing").ok();
      failed += !AppendAndWait(store, Steps("passing", 1, 9)).ok();
      std::promise<absl::Status> gone;
      store.DeleteRun("passing", [&](const absl::Status& status) {
        gone.set_value(status);
      });
      failed += !gone.get_future().get().ok();
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST(EventStoreThreads, CloseAnswersEachPendingAppend) {
  TestFolder folder;
  auto opened = EventStore::Open(folder.File("tandem.db"), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EventStore& store = **opened;
  ASSERT_TRUE(AddRun(store, "a").ok());
  std::atomic<int> sent{0};
  std::atomic<int> answered{0};
  std::atomic<bool> refused{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (!refused) {
        v1::EventBatch batch = Steps("a", 1, 1);
        batch.mutable_steps(0)->set_seq_id(0);
        ++sent;
        store.Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
                     [&](const absl::StatusOr<Appended>& appended) {
                       if (absl::IsCancelled(appended.status())) refused = true;
                       ++answered;
                     });
      }
    });
  }
  std::thread closer([&] { store.Close(); });
  store.Close();
  closer.join();
  for (std::thread& thread : threads) thread.join();
  opened->reset();  // answers the remaining appends
  EXPECT_EQ(answered, sent);
}

}  // namespace
}  // namespace tandem::slow_lane

// The cost of one run, or of one close, for the others: pages read, items in a
// transaction, time to close.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

v1::EventBatch Lifecycle(const std::string& run_id, int count,
                         const std::string& event) {
  v1::EventBatch batch;
  batch.set_run_id(run_id);
  for (int i = 0; i < count; ++i) batch.add_lifecycle()->set_event(event);
  return batch;
}

// The rows of the largest table; by hand: --test_env=SCALAR_ROWS=10000000.
int ScalarRows() {
  int rows = 400'000;
  const char* const given = getenv("SCALAR_ROWS");
  EXPECT_TRUE(given == nullptr || absl::SimpleAtoi(given, &rows)) << given;
  return rows;
}

class EventStoreBoundsTest : public testing::Test {
 protected:
  void Open(EventStore::Options options) {
    auto store = EventStore::Open(folder_.File("tandem.db"), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Keeps the store's thread busy until Release: later transactions take the
  // items that are queued meanwhile.
  void Block() {
    std::promise<void> begun;
    store_->Post(
        [&begun, released = released_.get_future().share()](Database&) {
          begun.set_value();
          released.wait();
          return absl::OkStatus();
        },
        [](const absl::Status&) {});
    begun.get_future().wait();
  }
  void Release() { released_.set_value(); }

  std::future<absl::Status> Append(v1::EventBatch batch) {
    auto done = std::make_shared<std::promise<absl::Status>>();
    store_->Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
                   [done](const absl::StatusOr<Appended>& appended) {
                     done->set_value(appended.status());
                   });
    return done->get_future();
  }

  // Queues a hundred events of run "a", and calls Close before the store takes
  // any of them; returns the answers' codes.
  std::vector<absl::StatusCode> CloseWithAHundredQueued() {
    Block();
    std::vector<std::future<absl::Status>> answers;
    for (int i = 0; i < 100; ++i) {
      answers.push_back(Append(Lifecycle("a", 1, "e")));
    }
    std::thread closing([this] { store_->Close(); });
    while (!absl::IsCancelled(store_->state())) std::this_thread::yield();
    Release();
    closing.join();
    std::vector<absl::StatusCode> codes;
    for (auto& answer : answers) codes.push_back(answer.get().code());
    return codes;
  }

  // The pages that the store's connection has read so far.
  int64_t PagesRead() {
    int64_t pages = 0;
    const absl::Status status = PostAndWait(*store_, [&](Database& database) {
      pages = 0;
      for (const int kind :
           {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS}) {
        int now = 0;
        int most = 0;
        sqlite3_db_status(database.connection(), kind, &now, &most, 0);
        pages += now;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return pages;
  }

  // Returns the pages that a new connection reads for a curve of one run, while
  // `runs` runs, in turns, got `events` events of scalars each.
  int PagesOfCurve(const std::string& file, int runs, int events) {
    const std::string path = folder_.File(file);
    store_ = *EventStore::Open(path, {.full_sync = false, .close_secs = 1e9});
    for (int run = 0; run < runs; ++run) {
      EXPECT_TRUE(AddRun(*store_, absl::StrCat("run ", run)).ok());
    }
    constexpr int kAtOnce = 50;
    for (int event = 0; event < events; event += kAtOnce) {
      for (int run = 0; run < runs; ++run) {
        v1::EventBatch batch;
        for (int i = 0; i < kAtOnce; ++i) {
          AddScalars(static_cast<uint64_t>(event + i), {i / 3.0, 1, 2, 3},
                     &batch);
        }
        batch.set_run_id(absl::StrCat("run ", run));
        WaitForRoom(*store_);
        Append(std::move(batch));
      }
    }
    store_->Close();  // after all batches: it empties the log, too
    const std::unique_ptr<Database> reader =
        *Database::Open(path, {.read_only = true});
    int rows = 0;
    const absl::Status read = reader->ForEachRow(
        "SELECT step, value FROM scalars WHERE run_id = 'run 0' AND name = "
        "'name 0'",
        [&rows](const Statement&) { return ++rows > 0; });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(rows, events);
    int pages = 0;
    int most = 0;
    sqlite3_db_status(reader->connection(), SQLITE_DBSTATUS_CACHE_MISS, &pages,
                      &most, 0);
    return pages;
  }

  TestFolder folder_;
  std::unique_ptr<EventStore> store_;
  std::promise<void> released_;
};

TEST_F(EventStoreBoundsTest, AnAppendReadsNoLargeEventBesideItsOwnRows) {
  Open({});
  for (const char* run : {"a", "b"}) ASSERT_TRUE(AddRun(*store_, run).ok());
  ASSERT_TRUE(AppendAndWait(*store_, Lifecycle("a", 100, "e")).ok());
  // Its key is next to that of the large event.
  const std::string large(size_t{16} << 20, 'y');
  ASSERT_TRUE(AppendAndWait(*store_, Lifecycle("b", 1, large)).ok());
  const int64_t before = PagesRead();
  constexpr int kRows = 1'000;
  ASSERT_TRUE(AppendAndWait(*store_, Lifecycle("a", kRows, "e")).ok());
  EXPECT_LT(PagesRead() - before, 10 * kRows);
}

TEST_F(EventStoreBoundsTest, AnAppendReadsNoLargeEventOfItsOwnRun) {
  Open({});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  const std::string large(size_t{1} << 20, 'y');
  ASSERT_TRUE(AppendAndWait(*store_, Lifecycle("a", 1, large)).ok());
  const int64_t before = PagesRead();
  ASSERT_TRUE(AppendAndWait(*store_, Lifecycle("a", 20, large)).ok());
  // The pages of the 20 new events are a part of the number.
  const int64_t pages =
      20 * (int64_t{1} << 20) / EventStore::Options{}.page_bytes;
  EXPECT_LT(PagesRead() - before, 2 * pages);
}

TEST_F(EventStoreBoundsTest, ACurveAmongManyRunsReadsAtMostTwiceItsPages) {
  constexpr int kRuns = 20;
  const int events = ScalarRows() / 4 / kRuns;
  const int alone = PagesOfCurve("alone.db", 1, events);
  const int among = PagesOfCurve("among.db", kRuns, events);
  std::printf("%d events: %d pages alone, %d among %d runs\n", events, alone,
              among, kRuns);
  EXPECT_GT(alone, 10);
  EXPECT_LE(among, 2 * alone);
}

TEST_F(EventStoreBoundsTest, ATransactionHasAtMostItsRowsAndBytes) {
  Open({.max_transaction_bytes = 100'000, .max_transaction_rows = 10});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  // One call of the listener for each transaction: the last number.
  std::vector<uint64_t> commits;
  store_->SetListener([&](const std::string&, const Numbers& last, uint64_t) {
    commits.push_back(last[Stream::kLifecycle]);
  });
  Block();
  std::vector<std::future<absl::Status>> answers;
  for (const int rows : {4, 6, 1, 11, 1}) {
    answers.push_back(Append(Lifecycle("a", rows, "e")));
  }
  for (const size_t bytes : {60'000u, 60'000u, 200'000u}) {
    answers.push_back(Append(Lifecycle("a", 1, std::string(bytes, 'y'))));
  }
  Release();
  for (auto& answer : answers) EXPECT_TRUE(answer.get().ok());
  store_->Close();
  EXPECT_THAT(commits, ElementsAre(10, 11, 22, 24, 25, 26));
}

TEST_F(EventStoreBoundsTest, AgeIsThatOfTheOldestItemThatIsNotDurable) {
  Open({});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  EXPECT_EQ(store_->oldest_queued_secs(), 0);
  Block();
  const double blocked = store_->oldest_queued_secs();
  EXPECT_GT(blocked, 0);
  auto answer = Append(Lifecycle("a", 1, "e"));
  EXPECT_GT(store_->oldest_queued_secs(), blocked);
  Release();
  ASSERT_TRUE(answer.get().ok());
  // The item's answer comes when its transaction is over.
  EXPECT_EQ(store_->oldest_queued_secs(), 0);
}

TEST_F(EventStoreBoundsTest, TheStateNamesAnItemThatWaitsTooLong) {
  Open({.slow_secs = 0.001});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  Block();
  auto answer = Append(Lifecycle("a", 1, "e"));
  while (store_->oldest_queued_secs() < 0.001) std::this_thread::yield();
  const absl::Status state = store_->state();
  EXPECT_TRUE(absl::IsUnavailable(state)) << state;
  EXPECT_THAT(std::string(state.message()), HasSubstr("has waited for "));
  Release();
  ASSERT_TRUE(answer.get().ok());
  EXPECT_TRUE(store_->state().ok());
}

TEST_F(EventStoreBoundsTest, CloseUndoesItemsBeyondItsTime) {
  Open({.max_transaction_rows = 1, .close_secs = 0});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  EXPECT_THAT(CloseWithAHundredQueued(), Each(absl::StatusCode::kCancelled));

  Open({});
  auto again = AppendAndWait(*store_, Lifecycle("a", 1, "e"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->last[Stream::kLifecycle], 1u);
}

TEST_F(EventStoreBoundsTest, CloseCommitsQueuedItemsWithinItsTime) {
  Open({.max_transaction_rows = 1, .close_secs = 1e9});
  ASSERT_TRUE(AddRun(*store_, "a").ok());
  EXPECT_THAT(CloseWithAHundredQueued(), Each(absl::StatusCode::kOk));
}

}  // namespace
}  // namespace tandem::slow_lane

// The store, with processes that are killed, full disks, and other programs
// that use its file. KILL_SEEDS: the number of series of kills, by default 5.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/testing/store_testing.h"

namespace tandem::slow_lane {
namespace {

using testing::HasSubstr;

constexpr int kNotPermitted = 77;

// Runs `body` in a new process, and returns its exit code.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const int code = body();
    _exit(testing::Test::HasFailure() ? 1 : code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Returns the number of a run's steps; checks that each is there once in order.
uint64_t CountSteps(const std::string& path, const std::string& run_id) {
  auto reader = EventReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return 0;
  v1::EventBatch all;
  auto rows =
      (*reader)->Read(run_id, Stream::kSteps, 0,
                      {.max_rows = 10'000'000, .max_bytes = 1 << 30}, &all);
  EXPECT_TRUE(rows.ok()) << rows.status();
  uint64_t expected = 0;
  for (const auto& step : all.steps()) {
    ++expected;
    if (step.seq_id() == expected && step.step_index() == expected) continue;
    ADD_FAILURE() << "row " << expected << " is " << step.ShortDebugString();
    break;
  }
  return expected;
}

v1::Position PositionOf(const std::string& path, const std::string& run_id) {
  auto reader = EventReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  auto progress = (*reader)->Progress(run_id);
  EXPECT_TRUE(progress.ok()) << progress.status();
  return progress->position;
}

// Appends as a proxy does, with some repeated numbers, until it is killed.
// Writes each acknowledged number to `acks`.
[[noreturn]] void AppendUntilKilled(const std::string& path, uint32_t seed,
                                    int acks) {
  std::mt19937 random(seed);
  auto below = [&random](uint64_t n) { return random() % n; };
  auto store = EventStore::Open(path, {.checkpoint_bytes = 1 << 18});
  if (!store.ok()) _exit(1);
  v1::Position position = PositionOf(path, "a");
  std::mutex mutex;
  std::condition_variable answered;
  int pending = 0;
  while (true) {
    const uint64_t again = std::min(position.steps(), below(6));
    const uint64_t end = position.steps() + 1 + below(200);
    v1::EventBatch batch = Steps("a", position.steps() + 1 - again, end);
    *batch.mutable_begin() = position;
    position.set_steps(end);
    position.set_offset(end * 100);
    *batch.mutable_end() = position;
    std::unique_lock<std::mutex> lock(mutex);
    answered.wait(lock, [&] { return pending < 8; });
    ++pending;
    (*store)->Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
                     [&, end](const absl::StatusOr<Appended>& appended) {
                       if (!appended.ok() ||
                           appended->last[Stream::kSteps] != end ||
                           write(acks, &end, sizeof(end)) != sizeof(end)) {
                         _exit(1);
                       }
                       const std::lock_guard<std::mutex> locked(mutex);
                       --pending;
                       answered.notify_one();
                     });
  }
}

TEST(EventStoreFaults, KillAtAnyPointKeepsAcknowledgedRowsWithoutGaps) {
  int seeds = 5;
  if (const char* set = getenv("KILL_SEEDS"); set != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(set, &seeds));
  }
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    TestFolder folder;
    const std::string path = folder.File("tandem.db");
    {
      auto store = EventStore::Open(path, {});
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE(AddRun(**store, "a").ok());
    }
    uint64_t durable = 0;
    for (int kill_number = 0; kill_number < 6; ++kill_number) {
      int pipe_ends[2];
      ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
      const auto child_seed = static_cast<uint32_t>(random());
      const pid_t child = fork();
      if (child == 0) AppendUntilKilled(path, child_seed, pipe_ends[1]);
      close(pipe_ends[1]);
      uint64_t acknowledged = durable;
      uint64_t seen = 0;
      for (uint64_t left = random() % 60; left > 0; --left) {
        if (read(pipe_ends[0], &seen, sizeof(seen)) != sizeof(seen)) break;
        acknowledged = seen;
      }
      // The kill comes in the middle of an operation.
      for (uint64_t spins = random() % 300'000; spins > 0; --spins) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
      while (read(pipe_ends[0], &seen, sizeof(seen)) == sizeof(seen)) {
        acknowledged = seen;
      }
      close(pipe_ends[0]);
      durable = CountSteps(path, "a");
      EXPECT_GE(durable, acknowledged);
      EXPECT_EQ(PositionOf(path, "a").steps(), durable);
      if (HasFailure()) return;
    }
    EXPECT_GT(durable, 0u);
  }
}

// Counts the batches that the store acknowledged and those that it answered
// with an error.
struct Answers {
  std::atomic<int> ok{0};
  std::atomic<int> failed{0};
};

void AppendBatches(EventStore& store, int first, int count, Answers* answers) {
  for (int i = first; i < first + count; ++i) {
    const auto begin = static_cast<uint64_t>(i) * 100;
    v1::EventBatch batch = Steps("a", begin + 1, begin + 100);
    for (auto& step : *batch.mutable_steps()) {
      step.set_observation_json(std::string(1'000, 'o'));
    }
    store.Append(std::make_shared<const v1::EventBatch>(std::move(batch)),
                 [answers](const absl::StatusOr<Appended>& appended) {
                   ++(appended.ok() ? answers->ok : answers->failed);
                 });
  }
}

void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

// The disk of the store's file has no room for forty batches of 100 KB;
// `make_room` makes room.
void FillAndRecover(const std::string& path, absl::StatusCode full,
                    const std::function<void()>& make_room) {
  constexpr int kBatches = 40;
  auto opened = EventStore::Open(path, {.retry_secs = 0.01});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EventStore& store = **opened;
  ASSERT_TRUE(AddRun(store, "a").ok());
  Answers answers;
  int sent = 0;
  while (store.state().ok() && sent < kBatches) {
    AppendBatches(store, sent++, 1, &answers);
    WaitUntil([&] { return answers.ok == sent || !store.state().ok(); });
  }
  ASSERT_LT(sent, kBatches) << "it was never full";
  EXPECT_EQ(store.state().code(), full) << store.state();
  EXPECT_THAT(std::string(store.state().message()), HasSubstr(path));
  // Later batches wait in the queue.
  AppendBatches(store, sent, 3, &answers);
  sent += 3;
  EXPECT_EQ(CountSteps(path, "a"), static_cast<uint64_t>(answers.ok) * 100);
  EXPECT_GT(store.queued_bytes(), 400'000u);

  make_room();
  WaitUntil([&] { return answers.ok + answers.failed == sent; });
  EXPECT_EQ(answers.ok, sent);
  EXPECT_TRUE(store.state().ok()) << store.state();
  EXPECT_EQ(CountSteps(path, "a"), static_cast<uint64_t>(sent) * 100);
}

// The same, but the store is closed while the disk is full.
void FillAndClose(const std::string& path, absl::StatusCode full,
                  const std::function<void()>& make_room) {
  Answers answers;
  int sent = 0;
  {
    auto store = EventStore::Open(path, {.retry_secs = 100});
    ASSERT_TRUE(store.ok()) << store.status();
    if (!AddRun(**store, "a").ok()) abort();
    while ((*store)->state().ok()) {
      AppendBatches(**store, sent++, 1, &answers);
      WaitUntil([&] { return answers.ok == sent || !(*store)->state().ok(); });
    }
    EXPECT_EQ((*store)->state().code(), full) << (*store)->state();
    AppendBatches(**store, sent++, 1, &answers);
  }
  EXPECT_EQ(answers.ok, sent - 2);
  EXPECT_EQ(answers.failed, 2);
  make_room();
  auto store = EventStore::Open(path, {});
  ASSERT_TRUE(store.ok()) << store.status();
  AppendBatches(**store, answers.ok, 2, &answers);
  (*store)->Close();
  EXPECT_EQ(answers.ok, sent);
  EXPECT_EQ(CountSteps(path, "a"), static_cast<uint64_t>(sent) * 100);
}

// A private disk of 6 MiB, of which 4.5 MiB are in use.
bool MountSmallDisk(const TestFolder& folder) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return false;
  }
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=6m") != 0) {
    return false;
  }
  std::ofstream(folder.File("filler")) << std::string(9 << 19, 'f');
  return true;
}

TEST(EventStoreFaults, FullDiskDelaysRowsWithoutLoss) {
  for (const auto& body : {FillAndRecover, FillAndClose}) {
    TestFolder folder;
    const int code = InChild([&] {
      if (!MountSmallDisk(folder)) return kNotPermitted;
      body(folder.File("tandem.db"), absl::StatusCode::kResourceExhausted,
           [&] { std::filesystem::remove(folder.File("filler")); });
      return 0;
    });
    if (code == kNotPermitted) GTEST_SKIP() << "no mount namespace to be had";
    EXPECT_EQ(code, 0);
  }
}

// A limit as by a quota; SQLite reports it as an I/O error.
TEST(EventStoreFaults, FileSizeLimitDelaysRowsWithoutLoss) {
  for (const auto& body : {FillAndRecover, FillAndClose}) {
    TestFolder folder;
    EXPECT_EQ(InChild([&] {
                signal(SIGXFSZ, SIG_IGN);
                rlimit limit;
                getrlimit(RLIMIT_FSIZE, &limit);
                limit.rlim_cur = 1'000'000;
                setrlimit(RLIMIT_FSIZE, &limit);
                body(folder.File("tandem.db"), absl::StatusCode::kUnavailable,
                     [&] {
                       limit.rlim_cur = limit.rlim_max;
                       setrlimit(RLIMIT_FSIZE, &limit);
                     });
                return 0;
              }),
              0);
  }
}

TEST(EventStoreFaults, ReadOnlyDiskIsRefusedWithTheReason) {
  TestFolder folder;
  const int code = InChild([&] {
    if (!MountSmallDisk(folder)) return kNotPermitted;
    const std::string path = folder.File("tandem.db");
    EXPECT_TRUE(EventStore::Open(path, {}).ok());
    if (mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
              nullptr) != 0) {
      return kNotPermitted;
    }
    for (const std::string& file : {path, folder.File("new.db")}) {
      const absl::Status status = EventStore::Open(file, {}).status();
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    }
    return 0;
  });
  if (code == kNotPermitted) GTEST_SKIP() << "no mount namespace to be had";
  EXPECT_EQ(code, 0);
}

TEST(EventStoreFaults, MovedTableDelaysRowsWithoutLoss) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto opened = EventStore::Open(path, {.retry_secs = 0.01});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EventStore& store = **opened;
  ASSERT_TRUE(AddRun(store, "a").ok());
  ASSERT_EQ(rename(path.c_str(), folder.File("away").c_str()), 0);
  Answers answers;
  AppendBatches(store, 0, 1, &answers);
  WaitUntil([&] { return !store.state().ok(); });
  EXPECT_THAT(std::string(store.state().message()), HasSubstr(path));
  EXPECT_EQ(answers.ok + answers.failed, 0);
  ASSERT_EQ(rename(folder.File("away").c_str(), path.c_str()), 0);
  WaitUntil([&] { return answers.ok == 1; });
  EXPECT_TRUE(store.state().ok());
  EXPECT_EQ(CountSteps(path, "a"), 100u);
}

TEST(EventStoreFaults, AnotherProgramsLockDelaysRowsWithoutLoss) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto store = EventStore::Open(path, {.retry_secs = 0.01});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(AddRun(**store, "a").ok());
  auto shell = Database::Open(path, {});
  ASSERT_TRUE(shell.ok()) << shell.status();
  ASSERT_TRUE((*shell)->Begin().ok());
  Answers answers;
  AppendBatches(**store, 0, 1, &answers);
  WaitUntil([&] { return !(*store)->state().ok(); });
  EXPECT_TRUE(absl::IsUnavailable((*store)->state())) << (*store)->state();
  EXPECT_THAT(std::string((*store)->state().message()), HasSubstr("lock"));
  EXPECT_EQ(answers.ok, 0);
  (*shell)->Rollback();
  WaitUntil([&] { return answers.ok == 1; });
  EXPECT_TRUE((*store)->state().ok());
  EXPECT_EQ(CountSteps(path, "a"), 100u);
}

TEST(EventStoreFaults, TwoStoresOnOneFileNumberRowsTogether) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto one = EventStore::Open(path, {});
  auto two = EventStore::Open(path, {});
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_TRUE(AddRun(**one, "a").ok());
  uint64_t duplicates = 0;
  for (uint64_t number = 1; number < 60; number += 3) {
    EventStore& store = number % 2 == 0 ? **one : **two;
    const uint64_t again = number == 1 ? 0 : 1;
    auto appended =
        AppendAndWait(store, Steps("a", number - again, number + 2));
    ASSERT_TRUE(appended.ok()) << appended.status();
    duplicates += appended->duplicate[Stream::kSteps];
  }
  EXPECT_EQ(CountSteps(path, "a"), 60u);
  EXPECT_EQ(duplicates, 19u);
}

TEST(EventStoreFaults, LogShrinksAfterAReadersSnapshotEnds) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto store = EventStore::Open(path, {.checkpoint_bytes = 1 << 18});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(AddRun(**store, "a").ok());
  auto log_bytes = [&] { return std::filesystem::file_size(path + "-wal"); };
  Answers answers;
  int sent = 0;
  auto append = [&](int count) {
    for (int i = 0; i < count; ++i) {
      AppendBatches(**store, sent++, 1, &answers);
      WaitUntil([&] { return answers.ok == sent; });
    }
  };
  // The limit is four times checkpoint_bytes, plus one transaction.
  constexpr uint64_t kLimit = (4 << 18) + 500'000;
  append(60);
  EXPECT_LT(log_bytes(), kLimit);

  auto shell = Database::Open(path, {.read_only = true});
  ASSERT_TRUE(shell.ok()) << shell.status();
  ASSERT_TRUE((*shell)->Execute("BEGIN; SELECT * FROM runs").ok());
  append(30);
  EXPECT_GT(log_bytes(), kLimit);
  ASSERT_TRUE((*shell)->Execute("COMMIT").ok());
  append(30);
  EXPECT_LT(log_bytes(), kLimit);
  EXPECT_EQ(CountSteps(path, "a"), 12'000u);
}

TEST(EventStoreFaults, RemovedLogIsReportedAndItsRowsAreKept) {
  TestFolder folder;
  const std::string path = folder.File("tandem.db");
  auto store = EventStore::Open(path, {});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(AddRun(**store, "a").ok());
  ASSERT_TRUE(AppendAndWait(**store, Steps("a", 1, 100)).ok());
  ASSERT_TRUE(std::filesystem::remove(path + "-wal"));
  absl::Status refused;
  (*store)->Append(std::make_shared<const v1::EventBatch>(Steps("a", 101, 102)),
                   [&refused](const absl::StatusOr<Appended>& appended) {
                     refused = appended.status();
                   });
  while ((*store)->state().ok()) std::this_thread::yield();
  EXPECT_THAT(std::string((*store)->state().message()), HasSubstr("-wal"));
  store->reset();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(CountSteps(path, "a"), 100u);
  auto next = EventStore::Open(path, {});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(AppendAndWait(**next, Steps("a", 101, 102)).ok());
}

}  // namespace
}  // namespace tandem::slow_lane

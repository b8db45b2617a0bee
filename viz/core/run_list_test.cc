// RunList over real runs: one of each kind, in the machine's /dev/shm.
#include "viz/core/run_list.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/os/unique_fd.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/core/frame_watch.h"
#include "viz/core/freshness.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

using Kind = PatternRun::Kind;

class RunListTest : public testing::Test {
 protected:
  std::optional<RunEntry> Find(const std::string& run,
                               int64_t now_ns = MonotonicNanos()) {
    for (const RunEntry& entry : list_.Scan(now_ns)) {
      if (entry.run == run) return entry;
    }
    return std::nullopt;
  }

  // Scans until `done` accepts the run's entry or its absence.
  template <typename Done>
  std::optional<RunEntry> Await(const std::string& run, Done done) {
    for (int i = 0; i < 6000; ++i) {
      std::optional<RunEntry> entry = Find(run);
      if (done(entry)) return entry;
      const timespec wait = {0, 10'000'000};
      nanosleep(&wait, nullptr);
    }
    ADD_FAILURE() << run << ": what was waited for did not come";
    return RunEntry();
  }

  RunList list_;
};

bool IsMoving(const std::optional<RunEntry>& entry) {
  return entry.has_value() && entry->moving;
}
bool IsThere(const std::optional<RunEntry>& entry) { return entry.has_value(); }
bool IsGone(const std::optional<RunEntry>& entry) { return !entry.has_value(); }

TEST_F(RunListTest, ListsASegment) {
  const std::string run = UniqueRegionName("list");
  Publisher publisher({.run = run});
  const std::optional<RunEntry> entry = Await(run, IsMoving);
  EXPECT_EQ(entry->kind, RunEntry::Kind::kSegment);
  EXPECT_EQ(entry->width, 64u);
  EXPECT_EQ(entry->height, 48u);
  EXPECT_EQ(entry->channels, 3u);
  EXPECT_EQ(entry->problem, "");
  EXPECT_GT(entry->frames, 0u);
}

TEST_F(RunListTest, ListsARegionWithItsTask) {
  const std::string run = UniqueRegionName("list");
  auto publisher = std::make_unique<Publisher>(
      PatternRun{.kind = Kind::kRegion, .run = run, .tiles = 4});
  const std::optional<RunEntry> entry = Await(run, IsMoving);
  EXPECT_EQ(entry->kind, RunEntry::Kind::kRegion);
  EXPECT_EQ(entry->task, "Pattern-v0");
  EXPECT_EQ(entry->num_envs, 4u);
  EXPECT_EQ(entry->width, 64u);
  publisher->Stop();
  const int64_t now_ns = MonotonicNanos();
  Find(run, now_ns);
  EXPECT_FALSE(std::isnan(Find(run, now_ns + 2'000'000'000)->step_rate_hz));
  // Nothing is drawn.
  EXPECT_TRUE(std::isnan(Find(run, now_ns + 3'000'000'001)->step_rate_hz));
  publisher->Kill();
  Await(run, IsGone);  // Its file still exists.
}

TEST_F(RunListTest, ShowsSinceWhenARunIsStale) {
  const std::string run = UniqueRegionName("list");
  Publisher publisher({.kind = Kind::kForeign, .run = run});
  Await(run, IsMoving);
  publisher.Stop();
  Find(run);  // Records the last frame.
  const int64_t before_ns = MonotonicNanos();
  const std::optional<RunEntry> entry = Find(run);
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(entry->moving);
  EXPECT_LT(entry->still_since_ns, before_ns);
}

TEST_F(RunListTest, ShowsTheProblemOfASegment) {
  const std::string run = UniqueRegionName("list");
  const std::string path = "/dev/shm/mosaic.fastlane." + run;
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  EXPECT_NE(Await(run, IsThere)->problem, "");
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  EXPECT_NE(Await(run, IsThere)->problem, "");
  EXPECT_EQ(Find(run)->width, 0u);
  unlink(path.c_str());
  Await(run, IsGone);
}

// Root may open every file, but maps none that its owner could truncate.
TEST_F(RunListTest, NamesOwnerOfRefusedRun) {
  constexpr uid_t kStranger = 54321;
  for (const Kind kind : {Kind::kSegment, Kind::kForeign, Kind::kRegion}) {
    const std::string run = UniqueRegionName("list");
    const Publisher publisher({.kind = kind, .run = run});
    EXPECT_FALSE(Await(run, IsMoving)->is_anothers);
    if (chown(publisher.path().c_str(), kStranger, kStranger) != 0) {
      GTEST_SKIP() << "this user may not give files away (chown)";
    }
    const std::optional<RunEntry> entry = Find(run);
    ASSERT_TRUE(entry.has_value());
    EXPECT_TRUE(entry->is_anothers);
    EXPECT_NE(entry->problem.find("uid 54321"), std::string::npos)
        << entry->problem;
    EXPECT_EQ(entry->width, 0u);
    FrameWatch watch(run);
    watch.Poll(MonotonicNanos());
    EXPECT_NE(watch.StateAt(MonotonicNanos()), FreshnessState::kConnected);
    EXPECT_EQ(watch.frames(), 0u);
    EXPECT_NE(watch.reason().find("uid 54321"), std::string::npos)
        << watch.reason();
  }
}

// The opposite case: the name of a segment that cannot be opened.
TEST_F(RunListTest, NamesOwnerOfUnreadableSegment) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const std::string run = UniqueRegionName("list");
  const Publisher publisher({.run = run});
  Await(run, IsMoving);
  constexpr int kNoUser = 77;
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setgroups(0, nullptr) != 0 ||
        setresgid(kNobody, kNobody, kNobody) != 0 ||
        setresuid(kNobody, kNobody, kNobody) != 0) {
      _exit(kNoUser);
    }
    const std::optional<RunEntry> entry = Find(run);
    EXPECT_TRUE(entry.has_value() && entry->is_anothers);
    EXPECT_TRUE(entry.has_value() &&
                entry->problem.find("uid 0") != std::string::npos);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoUser) GTEST_SKIP() << "no second user here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RunListTest, OmitsFilesThatAreNotRuns) {
  const std::string name = UniqueRegionName("norun");
  const UniqueFd file(
      open(("/dev/shm/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  ASSERT_EQ(write(file.get(), "hello", 5), 5);
  EXPECT_FALSE(Find(name).has_value());
  unlink(("/dev/shm/" + name).c_str());
}

}  // namespace
}  // namespace tandem

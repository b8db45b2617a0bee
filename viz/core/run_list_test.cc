// RunList over real runs: one of each kind, in /dev/shm as it is.
#include "viz/core/run_list.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/unique_region_name.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

using Kind = PatternRun::Kind;

class RunListTest : public testing::Test {
 protected:
  std::optional<RunEntry> Find(const std::string& run) {
    for (const RunEntry& entry : list_.Scan(MonotonicNanos())) {
      if (entry.run == run) return entry;
    }
    return std::nullopt;
  }

  // Scans until the run is there, or is not, or is as wanted.
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
  publisher->Kill();
  Await(run, IsGone);  // its file is still there
}

TEST_F(RunListTest, SaysSinceWhenARunStandsStill) {
  const std::string run = UniqueRegionName("list");
  Publisher publisher({.kind = Kind::kForeign, .run = run});
  Await(run, IsMoving);
  publisher.Stop();
  Find(run);  // takes in the last of it
  const int64_t before_ns = MonotonicNanos();
  const std::optional<RunEntry> entry = Find(run);
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(entry->moving);
  EXPECT_LT(entry->still_since_ns, before_ns);
}

TEST_F(RunListTest, SaysWhatIsWrongWithASegment) {
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

TEST_F(RunListTest, LeavesOutFilesThatAreNoRuns) {
  const std::string name = UniqueRegionName("norun");
  const UniqueFd file(
      open(("/dev/shm/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  ASSERT_EQ(write(file.get(), "hello", 5), 5);
  EXPECT_FALSE(Find(name).has_value());
  unlink(("/dev/shm/" + name).c_str());
}

}  // namespace
}  // namespace tandem

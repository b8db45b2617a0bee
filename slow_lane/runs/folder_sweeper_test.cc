#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/testing/test_processes.h"

namespace tandem::slow_lane {
namespace {

using std::filesystem::exists;

void Write(const std::string& path) { std::ofstream(path) << "x"; }

class FolderSweeperTest : public testing::Test {
 protected:
  RunFolder Made(const std::string& run_id) const {
    const RunFolder folder = RunFolder::At(data_.path(), run_id);
    EXPECT_TRUE(folder.Create().ok());
    std::filesystem::create_directories(folder.path() + "/a/b");
    Write(folder.path() + "/a/b/file");
    return folder;
  }

  void WaitUntilOnly(size_t count) const {
    WaitUntil(absl::StrCat(count, " folders to be left"), [&] {
      size_t left = 0;
      for (const auto& entry : std::filesystem::directory_iterator(
               absl::StrCat(data_.path(), "/runs"))) {
        left += entry.exists() ? 1 : 0;
      }
      return left == count;
    });
  }

  const TestFolder data_;
};

TEST_F(FolderSweeperTest, RemovesFoldersSetAsideBeforeAndAfterItsStart) {
  const RunFolder kept = Made("kept");
  const RunFolder before = Made("before");
  ASSERT_TRUE(before.SetAside().ok());
  EXPECT_FALSE(exists(before.path()));
  FolderSweeper sweeper(data_.path());
  WaitUntilOnly(1);
  // Two folders of the same name at once.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Made("again").SetAside().ok());
  }
  sweeper.Sweep();
  WaitUntilOnly(1);
  EXPECT_TRUE(exists(kept.path() + "/a/b/file"));
}

TEST_F(FolderSweeperTest, FollowsNoLink) {
  const std::string elsewhere = data_.File("elsewhere");
  std::filesystem::create_directory(elsewhere);
  Write(elsewhere + "/kept");
  const RunFolder folder = Made("run");
  std::filesystem::create_directory_symlink(elsewhere, folder.path() + "/link");
  ASSERT_TRUE(folder.SetAside().ok());
  const FolderSweeper sweeper(data_.path());
  WaitUntilOnly(0);
  EXPECT_TRUE(exists(elsewhere + "/kept"));
}

TEST_F(FolderSweeperTest, LeavesRemainingFoldersToTheNextSweeper) {
  const RunFolder folder = Made("run");
  for (int i = 0; i < 10'000; ++i) {
    Write(absl::StrCat(folder.path(), "/a/", i));
  }
  ASSERT_TRUE(folder.SetAside().ok());
  { const FolderSweeper stopped_soon(data_.path()); }
  const FolderSweeper next(data_.path());
  WaitUntilOnly(0);
}

}  // namespace
}  // namespace tandem::slow_lane

#include "slow_lane/runs/durable_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace tandem::slow_lane {
namespace {

size_t CountFiles(const std::string& folder) {
  size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    files += each.is_regular_file();
  }
  return files;
}

TEST(WriteDurably, ReplacesTheFileAndLeavesNoOther) {
  const std::string folder = testing::TempDir() + "/replaces";
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/record";
  ASSERT_TRUE(ReadIfExists(path).ok());
  EXPECT_EQ(*ReadIfExists(path), std::nullopt);
  EXPECT_TRUE(WriteDurably(path, "first").ok());
  EXPECT_EQ(*ReadIfExists(path), "first");
  const std::string large(100'000, 'x');
  EXPECT_TRUE(WriteDurably(path, large).ok());
  EXPECT_EQ(*ReadIfExists(path), large);
  EXPECT_TRUE(WriteDurably(path, "").ok());
  EXPECT_EQ(*ReadIfExists(path), "");
  EXPECT_EQ(CountFiles(folder), 1u);

  struct stat facts = {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(WriteDurably, FailsWithoutAFolderAndForAPathOfAFolder) {
  const std::string folder = testing::TempDir() + "/fails";
  EXPECT_FALSE(WriteDurably(folder + "/record", "text").ok());
  std::filesystem::create_directories(folder + "/record");
  EXPECT_FALSE(WriteDurably(folder + "/record", "text").ok());
  EXPECT_EQ(CountFiles(folder), 0u);
  EXPECT_FALSE(ReadIfExists(folder + "/record").ok());
}

}  // namespace
}  // namespace tandem::slow_lane

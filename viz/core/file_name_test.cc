#include "viz/core/file_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(NewFileName, HasTheRunAndTheTime) {
  EXPECT_THAT(NewFileName("demo-1.2", ".mp4"),
              MatchesRegex("demo-1\\.2-[0-9]{8}-[0-9]{6}\\.[0-9]{3}\\.mp4"));
}

TEST(NewFileName, AHostileRunLeadsIntoNoOtherFolder) {
  EXPECT_THAT(NewFileName("../a b\n\xe2\x80\xae", ".png"),
              MatchesRegex("\\.\\._a_b____-[0-9-]+\\.[0-9]{3}\\.png"));
  EXPECT_LT(NewFileName(std::string(4000, 'x'), ".png").size(), 130U);
}

TEST(MakeFolder, MakesItOrNamesTheFlag) {
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "/a/b");
  EXPECT_TRUE(MakeFolder("--f", folder).ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_TRUE(MakeFolder("--f", folder).ok());
  std::ofstream(absl::StrCat(folder, "/file")) << "x";
  for (const std::string& wrong :
       {std::string("/proc/none"), absl::StrCat(folder, "/file")}) {
    const absl::Status status = MakeFolder("--f", wrong);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("--f"), HasSubstr(wrong)));
  }
}

}  // namespace
}  // namespace tandem

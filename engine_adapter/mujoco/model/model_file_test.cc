#include "engine_adapter/mujoco/model/model_file.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

std::string PathOf(const std::string& xml_file) {
  return FindModelFile(xml_file, "/nowhere").value().path;
}

TEST(ModelFile, ANameIsAnAssets) {
  const ModelFile file = FindModelFile("ant.xml", "").value();
  EXPECT_TRUE(file.is_asset);
  EXPECT_TRUE(LoadModel(file).ok());
}

TEST(ModelFile, ANameIsLookedForInTheGivenFolderOnly) {
  const absl::Status status = FindModelFile("ant.xml", "/nowhere").status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "/nowhere")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "./")) << status;
}

TEST(ModelFile, PathIsUsedUnchanged) {
  for (const std::string path : {"./x.xml", "../x.xml", "/x/y.xml"}) {
    EXPECT_EQ(PathOf(path), path);
    EXPECT_FALSE(FindModelFile(path, "").value().is_asset);
  }
}

TEST(ModelFile, ATildeIsAHome) {
  // NOLINTBEGIN(concurrency-mt-unsafe): this test has one thread
  ASSERT_EQ(setenv("HOME", "/some/home", 1), 0);
  EXPECT_EQ(PathOf("~/x.xml"), "/some/home/x.xml");
  ASSERT_EQ(unsetenv("HOME"), 0);
  const passwd* const user = getpwuid(getuid());
  // NOLINTEND(concurrency-mt-unsafe)
  ASSERT_NE(user, nullptr);
  const std::string expected = absl::StrCat(user->pw_dir, "/x.xml");
  EXPECT_EQ(PathOf("~/x.xml"), expected);
  EXPECT_EQ(PathOf(absl::StrCat("~", user->pw_name, "/x.xml")), expected);
  EXPECT_EQ(CodeOf(FindModelFile("~absent user/x.xml", "").status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem

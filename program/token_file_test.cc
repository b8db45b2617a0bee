#include "program/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> ReadTokenOf(const std::string& content,
                                          mode_t mode = 0600) {
    std::ofstream(path_, std::ios::binary) << content;
    chmod(path_.c_str(), mode);
    return ReadToken(path_);
  }

  const std::string path_ =
      std::filesystem::path(testing::TempDir()) / "a token";
};

std::string Repeated(const std::string& text, size_t times) {
  std::string repeated;
  for (size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

// slow_lane/testing/token_file_test.py reads the same samples.
TEST_F(TokenFileTest, TakesAndRefusesTheTablesSamples) {
  std::ifstream file("program/testdata/tokens.json");
  const nlohmann::json samples = nlohmann::json::parse(file);
  ASSERT_GT(samples.size(), 10u);
  for (const nlohmann::json& sample : samples) {
    SCOPED_TRACE(sample["name"]);
    const size_t times = sample["times"];
    const absl::StatusOr<std::string> token =
        ReadTokenOf(Repeated(sample["content"], times));
    if (sample["token"].is_null()) {
      EXPECT_TRUE(absl::IsInvalidArgument(token.status())) << token.status();
    } else {
      ASSERT_TRUE(token.ok()) << token.status();
      EXPECT_EQ(*token, Repeated(sample["token"], times));
    }
  }
}

TEST_F(TokenFileTest, RefusesAFileThatOthersCanReadAndNamesTheCommand) {
  for (const mode_t mode : {0640, 0604, 0620}) {
    const absl::Status status = ReadTokenOf("0123456789abcdef", mode).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "chmod 600 '" + path_))
        << status;
  }
}

TEST_F(TokenFileTest, RefusesAnotherUsersFile) {
  ASSERT_TRUE(ReadTokenOf("0123456789abcdef").ok());
  if (chown(path_.c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root gives files away";
  }
  EXPECT_TRUE(absl::IsPermissionDenied(ReadToken(path_).status()));
}

TEST_F(TokenFileTest, RefusesPathsOtherThanFiles) {
  EXPECT_FALSE(ReadToken(path_ + "/none").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken("/dev/null").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(testing::TempDir()).status()));
}

}  // namespace
}  // namespace tandem

#include "slow_lane/wire/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"

namespace tandem::slow_lane {
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

TEST_F(TokenFileTest, IsTheContentWithoutWhiteSpaceAround) {
  EXPECT_EQ(*ReadTokenOf(" 0123456789abcdef\n"), "0123456789abcdef");
  EXPECT_EQ(*ReadTokenOf(std::string(kMostTokenBytes, 'x')),
            std::string(kMostTokenBytes, 'x'));
}

TEST_F(TokenFileTest, RefusesWhatIsTooShortOrTooLong) {
  for (const size_t bytes :
       {size_t{0}, kLeastTokenBytes - 1, kMostTokenBytes + 1, size_t{100000}}) {
    const absl::Status status = ReadTokenOf(std::string(bytes, 'x')).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

TEST_F(TokenFileTest, RefusesBytesThatAHeaderCannotHold) {
  for (const char* const content :
       {"0123456789 abcdef", "0123456789\nabcdef", "0123456789abcde\xc3\xa4"}) {
    const absl::Status status = ReadTokenOf(content).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
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

TEST_F(TokenFileTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(ReadToken(path_ + "/none").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken("/dev/null").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadToken(testing::TempDir()).status()));
}

}  // namespace
}  // namespace tandem::slow_lane

#include "viz/core/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class LogTailTest : public testing::Test {
 protected:
  LogTailTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "/log-XXXXXX");
    folder_ = mkdtemp(name.data());
  }
  ~LogTailTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text) const {
    ASSERT_TRUE(std::ofstream(absl::StrCat(folder_, "/", file)) << text);
  }
  LogTail Read(LogKind kind, std::optional<uint64_t> end = std::nullopt) const {
    const absl::StatusOr<LogTail> tail = ReadLogTail(folder_, kind, end);
    EXPECT_TRUE(tail.ok()) << tail.status();
    return tail.value_or(LogTail());
  }

  std::string folder_;
};

TEST_F(LogTailTest, ReadsTheFileOfItsKind) {
  Write("stderr.log", "errors\n");
  Write("stdout.jsonl", "output\n");
  Write("proxy.log", "proxy\n");
  EXPECT_EQ(Read(LogKindOf("stderr").value()).text, "errors\n");
  EXPECT_EQ(Read(LogKindOf("stdout").value()).text, "output\n");
  EXPECT_EQ(Read(LogKindOf("proxy").value()).text, "proxy\n");
  EXPECT_EQ(LogKindOf("../stderr"), std::nullopt);
}

TEST_F(LogTailTest, ReadsWholeLinesBackwards) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&text, "line ", i, "\n");
  Write("stderr.log", text);
  const LogTail last = Read(LogKind::kErrors);
  EXPECT_EQ(last.size, text.size());
  EXPECT_EQ(last.end, text.size());
  EXPECT_LE(last.text.size(), kMostLogBytes);
  EXPECT_THAT(last.text, StartsWith("line "));
  EXPECT_THAT(last.text, EndsWith("line 19999\n"));
  // The part before ends where this one begins, and so on to the file's begin.
  std::string all = last.text;
  uint64_t begin = last.begin;
  while (begin > 0) {
    const LogTail before = Read(LogKind::kErrors, begin);
    ASSERT_EQ(before.end, begin);
    ASSERT_LT(before.begin, begin);
    all = before.text + all;
    begin = before.begin;
  }
  EXPECT_EQ(all, text);
}

TEST_F(LogTailTest, ShowsHostileBytesAsText) {
  Write("stderr.log", "\x1b[2Jred\xff\nnext\n");
  EXPECT_EQ(Read(LogKind::kErrors).text, "\\x1b[2Jred\\xff\nnext\n");
}

TEST_F(LogTailTest, ALineWithoutEndIsShownInParts) {
  Write("stderr.log", std::string(3 * kMostLogBytes, 'x'));
  EXPECT_EQ(Read(LogKind::kErrors).text.size(), kMostLogBytes);
}

TEST_F(LogTailTest, RefusesLinksAndMissingFiles) {
  EXPECT_FALSE(ReadLogTail(folder_, LogKind::kErrors, std::nullopt).ok());
  Write("secret", "secret");
  ASSERT_EQ(symlink(absl::StrCat(folder_, "/secret").c_str(),
                    absl::StrCat(folder_, "/stderr.log").c_str()),
            0);
  EXPECT_FALSE(ReadLogTail(folder_, LogKind::kErrors, std::nullopt).ok());
}

}  // namespace
}  // namespace tandem

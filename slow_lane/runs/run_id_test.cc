#include "slow_lane/runs/run_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tandem::slow_lane {
namespace {

TEST(FormatUlid, WritesTimeAndRandomBitsMostSignificantFirst) {
  // The time and the text of the specification's example.
  const std::string text =
      FormatUlid(1469918176385, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(text, "01ARYZ6S410000000000000000");
  EXPECT_EQ(FormatUlid(0, {0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0x21}),
            "0000000000G000000000000011");
}

TEST(FormatUlid, WritesTheLargestOne) {
  const uint64_t last = (uint64_t{1} << 48) - 1;
  EXPECT_EQ(
      FormatUlid(last, {255, 255, 255, 255, 255, 255, 255, 255, 255, 255}),
      "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
}

TEST(FormatUlid, SortsAsTheClockRuns) {
  uint64_t millis = 1;
  std::string before = FormatUlid(0, {255, 255, 255, 255, 255, 255, 255, 255});
  for (; millis < uint64_t{1} << 47; millis = millis * 3 + 1) {
    const std::string now = FormatUlid(millis, {});
    EXPECT_LT(before, now) << millis;
    before = now;
  }
}

TEST(MakeRunId, NeverRepeatsAndIsValid) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = MakeRunId();
    EXPECT_EQ(id.size(), 26u);
    EXPECT_TRUE(CheckRunId(id).ok()) << id;
    EXPECT_TRUE(seen.insert(id).second) << id;
  }
}

TEST(CheckRunId, AcceptsNamesOfFolders) {
  for (const std::string& id :
       {std::string("a"), std::string("_"), std::string("9.x-_Z"),
        std::string("my_run"), std::string(128, 'x')}) {
    EXPECT_TRUE(CheckRunId(id).ok()) << id;
  }
}

TEST(CheckRunId, RefusesPathsOutOfTheFolder) {
  for (const std::string& id :
       {std::string(""), std::string("."), std::string(".."),
        std::string(".hidden"), std::string("-rf"), std::string("a/b"),
        std::string("../x"), std::string("a b"), std::string("a\0b", 3),
        std::string("a\n"), std::string("\xC3\xA9"), std::string(129, 'x')}) {
    const absl::Status status = CheckRunId(id);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << id;
  }
}

}  // namespace
}  // namespace tandem::slow_lane

#include "viz/core/file_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

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

}  // namespace
}  // namespace tandem

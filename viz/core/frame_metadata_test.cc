#include <gtest/gtest.h>

#include <string>

#include "viz/core/frame_watch.h"

namespace tandem {
namespace {

TEST(FrameMetadata, ReadsStepEnvironmentsAndEpisodes) {
  const FrameMetadata metadata = ParseFrameMetadata(
      R"({"step": 7, "envs": [0, 3], "rows": 2, "columns": 1, "episodes": 12,
          "episode_length": 8.5})");
  EXPECT_EQ(metadata.step, 7);
  EXPECT_EQ(metadata.envs, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(metadata.grid, (ImageGrid{2, 1}));
  EXPECT_EQ(metadata.tiles, 2U);
  EXPECT_EQ(metadata.episodes, 12);
  EXPECT_EQ(metadata.episode_length, 8.5);
}

TEST(FrameMetadata, OmitsMissingAndInvalidValues) {
  for (const char* odd :
       {"", "{", "[]", "{}", "\xff", R"({"step": "7", "envs": 3})",
        R"({"step": 1.5, "envs": [0, "x"], "episode_length": "8"})",
        R"({"step": 18446744073709551615, "envs": null})"}) {
    const FrameMetadata metadata = ParseFrameMetadata(odd);
    EXPECT_FALSE(metadata.step.has_value()) << odd;
    EXPECT_FALSE(metadata.episodes.has_value()) << odd;
    EXPECT_FALSE(metadata.episode_length.has_value()) << odd;
    EXPECT_TRUE(metadata.envs.empty()) << odd;
  }
}

TEST(FrameMetadata, AGridThatDoesNotHoldTheEnvironmentsIsOneTile) {
  for (const char* odd :
       {R"("rows": 1, "columns": 2)", R"("rows": 0, "columns": 3)",
        R"("rows": 5000, "columns": 1)", R"("rows": 3)", R"("rows": -1)"}) {
    const FrameMetadata metadata =
        ParseFrameMetadata(std::string(R"({"envs": [0, 1, 2], )") + odd + "}");
    EXPECT_EQ(metadata.grid, ImageGrid()) << odd;
    EXPECT_EQ(metadata.tiles, 1U) << odd;
  }
}

TEST(FrameMetadata, OmitsNumbersBeyondDouble) {
  const FrameMetadata most = ParseFrameMetadata(
      R"({"step": -9007199254740992, "episodes": 9007199254740992})");
  EXPECT_EQ(most.step, -kMaxMetadataInteger);
  EXPECT_EQ(most.episodes, kMaxMetadataInteger);
  for (const char* integer :
       {"9007199254740993", "-9007199254740993", "9223372036854775807",
        "-9223372036854775808", "18446744073709551615"}) {
    EXPECT_FALSE(
        ParseFrameMetadata(std::string(R"({"step": )") + integer + "}").step)
        << integer;
  }
}

TEST(FrameMetadata, ReadsRenderError) {
  EXPECT_EQ(ParseFrameMetadata(R"({"error_text": "no EGL"})").error, "no EGL");
  EXPECT_EQ(ParseFrameMetadata(R"({"error_text": 7})").error, "");
  EXPECT_EQ(
      ParseFrameMetadata("{\"error_text\": \"" + std::string(9000, 'x') + "\"}")
          .error.size(),
      512u);
}

TEST(FrameMetadata, BoundsValues) {
  EXPECT_FALSE(
      ParseFrameMetadata(R"({"step": 7})" + std::string(70'000, ' ')).step);
  std::string many = R"({"step": 7, "envs": [0)";
  for (int i = 0; i < 5000; ++i) many += ",1";
  const FrameMetadata metadata = ParseFrameMetadata(many + "]}");
  EXPECT_EQ(metadata.step, 7);
  EXPECT_TRUE(metadata.envs.empty());
  ParseFrameMetadata(std::string(60'000, '['));
}

}  // namespace
}  // namespace tandem

#include "engine_adapter/frames/frame_flags.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/frame_source.h"

namespace tandem {
namespace {

using Envs = std::vector<uint32_t>;

void ExpectRefused(const absl::Status& status, absl::string_view flag,
                   absl::string_view found) {
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), flag)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), found)) << status;
}

TEST(FrameOptions, ReadsASize) {
  FrameOptions options;
  ASSERT_TRUE(ParseFrameSize("--frames", "320x240", &options).ok());
  EXPECT_EQ(options.width, 320U);
  EXPECT_EQ(options.height, 240U);
  for (const char* const wrong : {"320", "320x", "x240", "320x240x3", "-1x2",
                                  "axb", "320X240", "4294967296x1"}) {
    ExpectRefused(ParseFrameSize("--frames", wrong, &options), "--frames",
                  wrong);
  }
}

TEST(FrameOptions, ReadsEnvironments) {
  FrameOptions options;
  ASSERT_TRUE(ParseFrameEnvs("", 64, &options).ok());
  EXPECT_EQ(options.envs, (Envs{0, 1, 2, 3}));
  ASSERT_TRUE(ParseFrameEnvs("", 2, &options).ok());
  EXPECT_EQ(options.envs, (Envs{0, 1}));
  ASSERT_TRUE(ParseFrameEnvs("all", 3, &options).ok());
  EXPECT_EQ(options.envs, (Envs{0, 1, 2}));
  ASSERT_TRUE(ParseFrameEnvs("7,0", 64, &options).ok());
  EXPECT_EQ(options.envs, (Envs{7, 0}));
  for (const char* const wrong : {"0,,1", "one", "0,-1", "1.5", ","}) {
    ExpectRefused(ParseFrameEnvs(wrong, 64, &options), "--frame_envs", wrong);
  }
}

TEST(FrameOptions, ReadsEffectsAndCameras) {
  FrameOptions options;
  ASSERT_TRUE(
      ParseFrameEffects("--frame_effects", "shadows,multisampling", &options)
          .ok());
  EXPECT_TRUE(options.effects.shadows);
  EXPECT_FALSE(options.effects.reflections);
  EXPECT_TRUE(options.effects.multisampling);
  ASSERT_TRUE(ParseFrameEffects("--frame_effects", "all", &options).ok());
  EXPECT_TRUE(options.effects.reflections);
  ASSERT_TRUE(ParseFrameEffects("--frame_effects", "", &options).ok());
  EXPECT_FALSE(options.effects.shadows);
  ExpectRefused(ParseFrameEffects("--frame_effects", "fog", &options),
                "--frame_effects", "fog");

  ASSERT_TRUE(ParseFrameCamera("gymnasium", &options).ok());
  EXPECT_EQ(options.camera, FrameCamera::kGymnasium);
  ExpectRefused(ParseFrameCamera("", &options), "--frame_camera", "''");
}

TEST(FrameOptions, RefusesInvalidValues) {
  const FrameOptions good = {.width = 320, .height = 240, .envs = {0, 3}};
  ASSERT_TRUE(CheckFrameOptions(good, 4).ok());
  ExpectRefused(CheckFrameOptions(good, 3), "--frame_envs", "found 3");

  FrameOptions options = good;
  options.width = 0;
  ExpectRefused(CheckFrameOptions(options, 4), "--frames", "0x240");
  options.width = 100'000;
  ExpectRefused(CheckFrameOptions(options, 4), "--frames", "100000x240");
  options = good;
  options.envs = {};
  ExpectRefused(CheckFrameOptions(options, 4), "--frame_envs", "found 0");
  options = good;
  for (const double hz :
       {-1.0, 1001.0, std::numeric_limits<double>::quiet_NaN()}) {
    options.hz = hz;
    ExpectRefused(CheckFrameOptions(options, 4), "--frame_hz", "found");
  }
  options = good;
  options.slots = 0;
  ExpectRefused(CheckFrameOptions(options, 4), "--frame_slots", "found 0");
}

TEST(FrameOptions, RefusesAFrameThatNoRingHolds) {
  FrameOptions options = {
      .width = 8000, .height = 8000, .envs = std::vector<uint32_t>(9)};
  ExpectRefused(CheckFrameOptions(options, 1), "--frames", "24000x24000");
  options.envs.resize(1);
  EXPECT_TRUE(CheckFrameOptions(options, 1).ok());
}

}  // namespace
}  // namespace tandem

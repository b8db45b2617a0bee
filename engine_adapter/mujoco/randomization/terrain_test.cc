#include "engine_adapter/mujoco/randomization/terrain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine_adapter/mujoco/model/model_file.h"

namespace tandem {
namespace {

constexpr int kColumns = 31;
constexpr int kRows = 21;

ModelPtr Rover() {
  return LoadModel({.path = "engine_adapter/mujoco/randomization/testdata/"
                            "rover.xml"})
      .value();
}

std::vector<float> Heights(const char* name, double difficulty,
                           uint64_t seed = 0) {
  const ModelPtr model = Rover();
  EnvRandom random(seed);
  SetTerrain(TerrainNamed(name).value(), difficulty, random, model.get());
  return {model->hfield_data, model->hfield_data + model->nhfielddata};
}

float At(const std::vector<float>& heights, int row, int column) {
  return heights[static_cast<size_t>(row * kColumns + column)];
}

TEST(Terrain, IsKnownByName) {
  for (const absl::string_view name : TerrainNames()) {
    EXPECT_TRUE(TerrainNamed(name).has_value()) << name;
  }
  EXPECT_FALSE(TerrainNamed("moon").has_value());
  EXPECT_FALSE(TerrainNamed("").has_value());
}

TEST(Terrain, IsAtItsLowestInTheMiddle) {
  for (const char* name : {"flat", "rough", "slope", "stairs"}) {
    const std::vector<float> heights = Heights(name, 1);
    ASSERT_EQ(heights.size(), kRows * kColumns);
    EXPECT_EQ(At(heights, kRows / 2, kColumns / 2), 0) << name;
  }
}

TEST(Terrain, HeightEqualsDifficulty) {
  for (const double difficulty : {0.0, 0.25, 1.0}) {
    for (const char* name : {"slope", "stairs"}) {
      EXPECT_EQ(std::ranges::max(Heights(name, difficulty)), difficulty);
    }
    const float highest = std::ranges::max(Heights("rough", difficulty));
    EXPECT_LE(highest, difficulty);
    EXPECT_GE(highest, 0.9 * difficulty);
    EXPECT_EQ(std::ranges::max(Heights("flat", difficulty)), 0);
  }
}

TEST(Terrain, SlopesRiseEvenlyAndStairsInEightSteps) {
  const std::vector<float> slope = Heights("slope", 1);
  EXPECT_FLOAT_EQ(At(slope, kRows / 2, 0), 1);
  EXPECT_FLOAT_EQ(At(slope, kRows / 2, kColumns / 2 + 3), 0.2F);
  EXPECT_FLOAT_EQ(At(slope, 5, kColumns / 2), 0.5F);
  std::vector<float> steps = Heights("stairs", 1);
  std::ranges::sort(steps);
  steps.erase(std::ranges::unique(steps).begin(), steps.end());
  EXPECT_EQ(steps.size(), 9);  // the ground, and eight steps
}

TEST(Terrain, IsRoughInAnotherWayWithAnotherSeed) {
  EXPECT_EQ(Heights("rough", 1, 5), Heights("rough", 1, 5));
  EXPECT_NE(Heights("rough", 1, 5), Heights("rough", 1, 6));
}

}  // namespace
}  // namespace tandem

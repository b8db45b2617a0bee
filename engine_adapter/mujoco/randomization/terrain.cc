#include "engine_adapter/mujoco/randomization/terrain.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem {
namespace {

constexpr std::array<absl::string_view, 4> kNames = {"flat", "rough", "slope",
                                                     "stairs"};
constexpr double kStairs = 8;
// Rough ground is even in the middle, in this part of the field's width.
constexpr double kEvenPart = 0.1;

// Returns -1 for the first of `count` points, 1 for the last.
double Across(int i, int count) {
  return count > 1 ? 2.0 * i / (count - 1) - 1 : 0;
}

// Returns 0 .. 1. `out` is 0 in the middle and 1 at the edge.
double Height(Terrain terrain, double out, EnvRandom& random) {
  switch (terrain) {
    case Terrain::kFlat:
      return 0;
    case Terrain::kRough: {
      const double height = random.Uniform(0, 1);
      return out < kEvenPart ? 0 : height;
    }
    case Terrain::kSlope:
      return out;
    case Terrain::kStairs:
      return std::floor(out * kStairs) / kStairs;
  }
  return 0;
}

}  // namespace

std::optional<Terrain> TerrainNamed(absl::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<Terrain>(found - kNames.begin());
}

std::vector<absl::string_view> TerrainNames() {
  return {kNames.begin(), kNames.end()};
}

void SetTerrain(Terrain terrain, double difficulty, EnvRandom& random,
                mjModel* model) {
  for (int field = 0; field < model->nhfield; ++field) {
    float* height = model->hfield_data + model->hfield_adr[field];
    const int rows = model->hfield_nrow[field];
    const int columns = model->hfield_ncol[field];
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        const double out = std::max(std::abs(Across(row, rows)),
                                    std::abs(Across(column, columns)));
        *height++ =
            static_cast<float>(difficulty * Height(terrain, out, random));
      }
    }
  }
}

}  // namespace tandem

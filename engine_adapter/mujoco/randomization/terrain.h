// Terrains: the height fields that a contract gives a model.
//
// Data flow: name -> Terrain; Terrain, difficulty -> mjModel.hfield_data.
//
//   std::optional<Terrain> terrain = TerrainNamed("stairs");
//   SetTerrain(*terrain, /*difficulty=*/0.5, random, model);

#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine_adapter/core/env_random.h"

namespace tandem {

// The middle of every terrain has height 0, the lowest: a robot that starts
// there stands on it. Towards the four edges:
enum class Terrain : uint8_t {
  kFlat,    // height 0
  kRough,   // each point has its own height, drawn uniformly
  kSlope,   // linear rise
  kStairs,  // rise in eight steps
};

std::optional<Terrain> TerrainNamed(absl::string_view name);
std::vector<absl::string_view> TerrainNames();

// Writes all height fields of the model. Heights are at most `difficulty` (0 to
// 1) times the field's maximum. Draws for kRough only. Allocates nothing.
void SetTerrain(Terrain terrain, double difficulty, EnvRandom& random,
                mjModel* model);

}  // namespace tandem

// Terrains: the height fields that a contract gives a model.
//
// Data flow: name -> Terrain; Terrain, difficulty -> mjModel.hfield_data.
//
//   std::optional<Terrain> terrain = TerrainNamed("stairs");
//   SetTerrain(*terrain, /*difficulty=*/0.5, random, model);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_TERRAIN_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_TERRAIN_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine_adapter/core/env_random.h"

namespace tandem {

// In the middle every terrain has its lowest height, the field's zero, so a
// robot that starts there stands on it. Towards the edges:
enum class Terrain : uint8_t {
  kFlat,    // it stays at zero
  kRough,   // each point has its own height, drawn uniformly
  kSlope,   // rises evenly, to all four sides
  kStairs,  // rises in eight steps
};

std::optional<Terrain> TerrainNamed(absl::string_view name);
std::vector<absl::string_view> TerrainNames();

// Writes all of the model's height fields; the highest points are `difficulty`
// of what the model gives the field. Draws for kRough only. No allocation.
void SetTerrain(Terrain terrain, double difficulty, EnvRandom& random,
                mjModel* model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_TERRAIN_H_

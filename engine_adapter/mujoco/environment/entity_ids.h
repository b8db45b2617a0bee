// Entity ids: the numbers of a model's objects in the RPC services.
//
// Data flow: model -> ids, equal for every client of the model. Bodies are
// first, then geoms, cameras and lights, from 1.
//
//   info.id = EntityId(model, EntityKind::kCamera, camera);

#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <cstdint>

namespace tandem {

// In the order of their ids.
enum class EntityKind : uint8_t { kBody, kGeom, kCamera, kLight };

inline constexpr EntityKind kEntityKinds[] = {
    EntityKind::kBody, EntityKind::kGeom, EntityKind::kCamera,
    EntityKind::kLight};

// MuJoCo's mjtObj.
inline int ObjectType(EntityKind kind) {
  constexpr int kTypes[] = {mjOBJ_BODY, mjOBJ_GEOM, mjOBJ_CAMERA, mjOBJ_LIGHT};
  return kTypes[static_cast<size_t>(kind)];
}

inline int CountOf(const mjModel& model, EntityKind kind) {
  const mjtSize counts[] = {model.nbody, model.ngeom, model.ncam, model.nlight};
  return static_cast<int>(counts[static_cast<size_t>(kind)]);
}

// Returns the id of object `index` (from 0) of this kind.
inline uint64_t EntityId(const mjModel& model, EntityKind kind, int index) {
  uint64_t id = 1;
  for (const EntityKind before : kEntityKinds) {
    if (before == kind) break;
    id += static_cast<uint64_t>(CountOf(model, before));
  }
  return id + static_cast<uint64_t>(index);
}

}  // namespace tandem

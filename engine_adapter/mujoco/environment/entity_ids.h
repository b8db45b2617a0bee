// Entity ids: how services number what is in a model.
//
// Data flow: model -> ids, the same for every client of the model.
// Bodies come first, then geoms, cameras and lights, from 1 on.
//
//   info.id = EntityId(model, EntityKind::kCamera, camera);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_IDS_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_IDS_H_

#include <mujoco/mujoco.h>

#include <cstdint>

namespace tandem {

enum class EntityKind : uint8_t { kBody, kGeom, kCamera, kLight };

inline constexpr EntityKind kEntityKinds[] = {
    EntityKind::kBody, EntityKind::kGeom, EntityKind::kCamera,
    EntityKind::kLight};

inline int CountOf(const mjModel& model, EntityKind kind) {
  switch (kind) {
    case EntityKind::kBody:
      return static_cast<int>(model.nbody);
    case EntityKind::kGeom:
      return static_cast<int>(model.ngeom);
    case EntityKind::kCamera:
      return static_cast<int>(model.ncam);
    case EntityKind::kLight:
      return static_cast<int>(model.nlight);
  }
  return 0;
}

// Of the kind's number `index`, from 0.
inline uint64_t EntityId(const mjModel& model, EntityKind kind, int index) {
  uint64_t id = 1;
  for (const EntityKind before : kEntityKinds) {
    if (before == kind) break;
    id += static_cast<uint64_t>(CountOf(model, before));
  }
  return id + static_cast<uint64_t>(index);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_IDS_H_

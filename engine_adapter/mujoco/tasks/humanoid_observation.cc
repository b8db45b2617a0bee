#include "engine_adapter/mujoco/tasks/humanoid_observation.h"

#include <span>

#include "engine_adapter/mujoco/model/part_names.h"

namespace tandem {
namespace {

constexpr int kRootVelocities = 6;  // which no actuator drives

std::span<const mjtNum> Values(const mjtNum* begin, mjtSize count) {
  return {begin, static_cast<size_t>(count)};
}

}  // namespace

HumanoidObservation::HumanoidObservation(TaskSetup& setup) {
  TaskOptions& options = setup.options();
  hidden_positions_ =
      options.Bool("exclude_current_positions_from_observation", true) ? 2 : 0;
  include_cinert_ = options.Bool("include_cinert_in_observation", true);
  include_cvel_ = options.Bool("include_cvel_in_observation", true);
  include_qfrc_actuator_ =
      options.Bool("include_qfrc_actuator_in_observation", true);
  include_cfrc_ext_ = options.Bool("include_cfrc_ext_in_observation", true);
  setup.NeedPositions(2);
  if (include_qfrc_actuator_) {
    setup.NeedAtLeast(kRootVelocities, setup.model().nv, "velocities (nv)");
  }
}

void HumanoidObservation::Put(const mjModel& model, const mjData& data,
                              ObsWriter& obs) const {
  obs.Put({"qpos", PositionName, hidden_positions_},
          Values(data.qpos, model.nq).subspan(hidden_positions_));
  obs.Put({"qvel", VelocityName}, Values(data.qvel, model.nv));
  // Of bodies: not the world, which comes first.
  const mjtSize bodies = model.nbody - 1;
  if (include_cinert_) {
    obs.Put({"cinert", BodyNumberName<10>, 10},
            Values(data.cinert + 10, bodies * 10));
  }
  if (include_cvel_) {
    obs.Put({"cvel", BodyNumberName<6>, 6}, Values(data.cvel + 6, bodies * 6));
  }
  if (include_qfrc_actuator_) {
    obs.Put({"qfrc_actuator", VelocityName, kRootVelocities},
            Values(data.qfrc_actuator, model.nv).subspan(kRootVelocities));
  }
  if (include_cfrc_ext_) {
    obs.Put({"cfrc_ext", BodyNumberName<6>, 6},
            Values(data.cfrc_ext + 6, bodies * 6));
  }
}

}  // namespace tandem

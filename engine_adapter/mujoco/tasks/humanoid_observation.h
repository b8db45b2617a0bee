// What both humanoids observe, with the options that choose of it.
//
//   HumanoidObservation observation(setup);
//   observation.Put(model, data, obs);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_TASKS_HUMANOID_OBSERVATION_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_TASKS_HUMANOID_OBSERVATION_H_

#include <mujoco/mujoco.h>

#include <cstddef>

#include "engine_adapter/mujoco/model/row_writer.h"
#include "engine_adapter/mujoco/model/task_setup.h"

namespace tandem {

class HumanoidObservation {
 public:
  // Needs two positions, and six velocities where forces are observed.
  explicit HumanoidObservation(TaskSetup& setup);

  void Put(const mjModel& model, const mjData& data, ObsWriter& obs) const;

 private:
  size_t hidden_positions_;
  bool include_cinert_;
  bool include_cvel_;
  bool include_qfrc_actuator_;
  bool include_cfrc_ext_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_TASKS_HUMANOID_OBSERVATION_H_

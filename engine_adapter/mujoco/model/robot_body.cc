#include "engine_adapter/mujoco/model/robot_body.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tandem {

void ComputeTransmission(const mjModel& model, mjData* data) {
  mj_kinematics(&model, data);
  mj_comPos(&model, data);
  mj_tendon(&model, data);
  mj_transmission(&model, data);
}

int RobotOf(const mjModel& model, const mjData& data) {
  std::vector<int> actuators(static_cast<size_t>(model.nbody));
  for (mjtSize i = 0; i < model.nout; ++i) {
    if (data.moment_rownnz[i] == 0) continue;
    const int dof = data.moment_colind[data.moment_rowadr[i]];
    const int root = model.body_rootid[model.dof_bodyid[dof]];
    ++actuators[static_cast<size_t>(root)];
  }
  const auto most = std::ranges::max_element(actuators);
  if (*most > 0) return static_cast<int>(most - actuators.begin());
  return model.nbody > 1 ? 1 : 0;
}

}  // namespace tandem

#include "engine_adapter/mujoco/environment/mujoco_state_port.h"

#include <mujoco/mujoco.h>

#include <cstddef>
#include <limits>
#include <utility>

#include "engine_adapter/mujoco/model/part_names.h"

namespace tandem {
namespace {

MujocoPort::Actuator ActuatorOf(const mjModel& model, int index) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool limited = model.actuator_ctrllimited[index] != 0;
  const mjtNum* const range = model.actuator_ctrlrange + mjtSize{2} * index;
  return {.name = OwnName(model, mjOBJ_ACTUATOR, index),
          .low = limited ? static_cast<float>(range[0]) : -kInfinity,
          .high = limited ? static_cast<float>(range[1]) : kInfinity};
}

}  // namespace

MujocoStatePort::MujocoStatePort(std::vector<MujocoEnvironment*> environments)
    : environments_(std::move(environments)) {
  const mjModel& model = environments_.front()->model();
  info_.nq = static_cast<uint32_t>(model.nq);
  info_.nv = static_cast<uint32_t>(model.nv);
  for (int i = 0; i < model.njnt; ++i) {
    info_.joint_names.push_back(OwnName(model, mjOBJ_JOINT, i));
  }
  for (int i = 0; i < model.nq; ++i) {
    info_.position_names.push_back(PositionName(model, i));
  }
  for (int i = 0; i < model.nu; ++i) {
    info_.actuators.push_back(ActuatorOf(model, i));
  }
}

rpc::JointStateT MujocoStatePort::Joints(uint32_t env) const {
  const mjData& data = *std::as_const(*environments_[env]).data();
  rpc::JointStateT joints;
  joints.positions.assign(data.qpos, data.qpos + info_.nq);
  joints.velocities.assign(data.qvel, data.qvel + info_.nv);
  joints.nq = info_.nq;
  joints.nv = info_.nv;
  joints.env_id = env;
  return joints;
}

std::vector<float> MujocoStatePort::Controls(uint32_t env) const {
  std::vector<float> controls(info_.actuators.size());
  for (size_t i = 0; i < controls.size(); ++i) {
    controls[i] = environments_[env]->Control(i);
  }
  return controls;
}

}  // namespace tandem

#include "engine_adapter/mujoco/environment/mujoco_state_port.h"

#include <mujoco/mujoco.h>

#include <cstddef>
#include <limits>
#include <memory>
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

rpc::MjJointType TypeOf(int type) {
  switch (type) {
    case mjJNT_FREE:
      return rpc::MjJointType::FREE;
    case mjJNT_BALL:
      return rpc::MjJointType::BALL;
    case mjJNT_SLIDE:
      return rpc::MjJointType::SLIDE;
    case mjJNT_HINGE:
      return rpc::MjJointType::HINGE;
    default:
      return rpc::MjJointType::UNKNOWN;
  }
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

rpc::GetModelInfoResponseT MujocoStatePort::Model() const {
  const mjModel& model = environments_.front()->model();
  rpc::GetModelInfoResponseT info;
  info.nq = info_.nq;
  info.nv = info_.nv;
  info.nu = static_cast<uint32_t>(model.nu);
  info.njnt = static_cast<uint32_t>(model.njnt);
  for (int i = 0; i < model.njnt; ++i) {
    auto joint = std::make_unique<rpc::JointDescriptorT>();
    joint->index = static_cast<uint32_t>(i);
    joint->name = info_.joint_names[static_cast<size_t>(i)];
    joint->type = TypeOf(model.jnt_type[i]);
    joint->qpos_adr = static_cast<uint32_t>(model.jnt_qposadr[i]);
    joint->qvel_adr = static_cast<uint32_t>(model.jnt_dofadr[i]);
    joint->limited = model.jnt_limited[i] != 0;
    joint->range_lo = static_cast<float>(model.jnt_range[2 * i]);
    joint->range_hi = static_cast<float>(model.jnt_range[2 * i + 1]);
    info.joints.push_back(std::move(joint));
  }
  for (int i = 0; i < model.nu; ++i) {
    auto actuator = std::make_unique<rpc::ActuatorDescriptorT>();
    actuator->index = static_cast<uint32_t>(i);
    actuator->name = info_.actuators[static_cast<size_t>(i)].name;
    actuator->ctrl_limited = model.actuator_ctrllimited[i] != 0;
    actuator->ctrl_range_lo =
        static_cast<float>(model.actuator_ctrlrange[2 * i]);
    actuator->ctrl_range_hi =
        static_cast<float>(model.actuator_ctrlrange[2 * i + 1]);
    const int kind = model.actuator_trntype[i];
    const bool moves_joint = kind == mjTRN_JOINT || kind == mjTRN_JOINTINPARENT;
    actuator->target_joint_index =
        moves_joint ? model.actuator_trnid[2 * i] : -1;
    info.actuators.push_back(std::move(actuator));
  }
  return info;
}

std::vector<rpc::ActuatorGainInfoT> MujocoStatePort::Gains(uint32_t env) const {
  const mjModel& model = environments_[env]->model();
  std::vector<rpc::ActuatorGainInfoT> gains(info_.actuators.size());
  for (size_t i = 0; i < gains.size(); ++i) {
    gains[i].actuator_index = static_cast<uint32_t>(i);
    gains[i].actuator_name = info_.actuators[i].name;
    gains[i].gain_prm_0 =
        static_cast<float>(model.actuator_gainprm[i * mjNGAIN]);
    gains[i].bias_prm_0 =
        static_cast<float>(model.actuator_biasprm[i * mjNBIAS]);
  }
  return gains;
}

rpc::FullStateT MujocoStatePort::State(uint32_t env) const {
  rpc::JointStateT joints = Joints(env);
  rpc::FullStateT state;
  state.qpos = std::move(joints.positions);
  state.qvel = std::move(joints.velocities);
  state.ctrl = Controls(env);
  state.time = std::as_const(*environments_[env]).data()->time;
  return state;
}

void MujocoStatePort::SetPositions(uint32_t env,
                                   const std::map<uint32_t, float>& positions) {
  MujocoEnvironment& environment = *environments_[env];
  const mjModel& model = environment.model();
  const mjtNum* const before = environment.data()->qpos;
  std::vector<mjtNum> qpos(before, before + model.nq);
  for (const auto& [index, value] : positions) {
    qpos[index] = static_cast<mjtNum>(value);
  }
  mj_normalizeQuat(&model, qpos.data());
  environment.SetPhysics(qpos, mjSTATE_QPOS);
}

}  // namespace tandem

#include "engine_adapter/mujoco/randomization/state_noise.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

void Turn(double noise, EnvRandom& random, mjtNum* quat) {
  std::array<mjtNum, 3> turn;
  for (mjtNum& each : turn) each = noise * random.StandardNormal();
  mju_quatIntegrate(quat, turn.data(), 1);
}

// Of a hinge, slide or ball joint.
void ShakePosition(double noise, EnvRandom& random, const mjModel& model,
                   int joint, mjtNum* qpos) {
  mjtNum* const position = qpos + model.jnt_qposadr[joint];
  if (model.jnt_type[joint] == mjJNT_BALL) {
    Turn(noise, random, position);
  } else {
    *position += noise * random.StandardNormal();
  }
}

void HoldToLimits(const mjModel& model, int joint, mjtNum* qpos) {
  if (!model.jnt_limited[joint]) return;
  mjtNum* const position = qpos + model.jnt_qposadr[joint];
  const mjtNum* const range = model.jnt_range + mjtSize{2} * joint;
  if (model.jnt_type[joint] != mjJNT_BALL) {
    *position = std::clamp(*position, range[0], range[1]);
    return;
  }
  std::array<mjtNum, 3> axis;
  mju_quat2Vel(axis.data(), position, 1);
  const mjtNum angle = mju_normalize3(axis.data());
  if (angle > range[1]) mju_axisAngle2Quat(position, axis.data(), range[1]);
}

void ShakePose(const Contract& contract, const FloatingBase& base,
               EnvRandom& random, const mjModel& model, mjtNum* qpos) {
  for (size_t axis = 0; axis < base.slides.size(); ++axis) {
    const double noise = contract.pose_position_noise[axis];
    const FloatingBase::Slide& slide = base.slides[axis];
    if (noise == 0 || !base.MovesAlong(static_cast<int>(axis))) continue;
    const double moved = noise * random.StandardNormal();
    if (base.free_joint >= 0) {
      qpos[model.jnt_qposadr[base.free_joint] + static_cast<int>(axis)] +=
          moved;
    } else {
      qpos[model.jnt_qposadr[slide.joint]] += slide.along * moved;
    }
  }
  const double noise = contract.pose_orientation_noise;
  if (noise == 0) return;
  if (base.free_joint >= 0) {
    Turn(noise, random, qpos + model.jnt_qposadr[base.free_joint] + 3);
  }
  for (const int joint : base.turns) {
    ShakePosition(noise, random, model, joint, qpos);
  }
}

}  // namespace

void ShakeState(const Contract& contract, const ModelParts& parts,
                EnvRandom& random, const mjModel& model, mjData* data) {
  ShakePose(contract, parts.base, random, model, data->qpos);
  if (const double noise = contract.joint_position_noise; noise != 0) {
    for (const int joint : parts.joints) {
      ShakePosition(noise, random, model, joint, data->qpos);
      HoldToLimits(model, joint, data->qpos);
    }
  }
  if (const double noise = contract.joint_velocity_noise; noise != 0) {
    for (const int joint : parts.joints) {
      const int count = model.jnt_type[joint] == mjJNT_BALL ? 3 : 1;
      for (int i = 0; i < count; ++i) {
        data->qvel[model.jnt_dofadr[joint] + i] +=
            noise * random.StandardNormal();
      }
    }
  }
}

}  // namespace tandem

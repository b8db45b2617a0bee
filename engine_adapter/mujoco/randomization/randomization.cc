#include "engine_adapter/mujoco/randomization/randomization.h"

#include <algorithm>
#include <cmath>

#include "engine_adapter/mujoco/randomization/floating_base.h"
#include "engine_adapter/mujoco/randomization/model_draws.h"
#include "engine_adapter/mujoco/randomization/terrain.h"

namespace tandem {
namespace {

// Returns a horizontal direction (x, y) of length 1.
std::array<double, 2> DrawDirection(const FloatingBase& base,
                                    EnvRandom& random) {
  if (base.MovesAlong(0) && base.MovesAlong(1)) {
    const double angle = random.Uniform(0, 2 * mjPI);
    return {std::cos(angle), std::sin(angle)};
  }
  const double sign = random.Uniform(0, 1) < 0.5 ? -1 : 1;
  return base.MovesAlong(0) ? std::array<double, 2>{sign, 0}
                            : std::array<double, 2>{0, sign};
}

void Turn(double noise, EnvRandom& random, mjtNum* quat) {
  std::array<mjtNum, 3> turn;
  for (mjtNum& each : turn) each = noise * random.StandardNormal();
  mju_quatIntegrate(quat, turn.data(), 1);
}

// `joint` is a hinge, slide or ball joint.
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

void Randomization::DrawModel(mjModel* model, mjData* data) {
  RestoreModel(*original_, model);
  tandem::DrawModel(contract_, *parts_, random_, model, data);
}

void Randomization::ShakeState(const mjModel& model, mjData* data) {
  ShakePose(contract_, parts_->base, random_, model, data->qpos);
  if (const double noise = contract_.joint_position_noise; noise != 0) {
    for (const int joint : parts_->joints) {
      ShakePosition(noise, random_, model, joint, data->qpos);
      HoldToLimits(model, joint, data->qpos);
    }
  }
  if (const double noise = contract_.joint_velocity_noise; noise != 0) {
    for (const int joint : parts_->joints) {
      const int count = model.jnt_type[joint] == mjJNT_BALL ? 3 : 1;
      for (int i = 0; i < count; ++i) {
        data->qvel[model.jnt_dofadr[joint] + i] +=
            noise * random_.StandardNormal();
      }
    }
  }
  if (contract_.push_interval) {
    next_push_secs_ = contract_.push_interval->Draw(random_);
  }
  DrawCommand(/*now_secs=*/0);
}

void Randomization::BeforeStep(const mjModel& model, mjData* data) {
  const FloatingBase& base = parts_->base;
  if (!contract_.push_interval || !contract_.push_velocity) return;
  if (!base.MovesLevel()) return;
  // Half a time step of tolerance: rounding errors of data->time must not delay
  // the push by a step.
  if (data->time + model.opt.timestep / 2 < next_push_secs_) return;
  const double velocity = contract_.push_velocity->Draw(random_);
  const std::array<double, 2> direction = DrawDirection(base, random_);
  for (size_t axis = 0; axis < direction.size(); ++axis) {
    const double added = velocity * direction[axis];
    const FloatingBase::Slide& slide = base.slides[axis];
    if (base.free_joint >= 0) {
      data->qvel[model.jnt_dofadr[base.free_joint] + static_cast<int>(axis)] +=
          added;
    } else if (slide.joint >= 0) {
      data->qvel[model.jnt_dofadr[slide.joint]] += slide.along * added;
    }
  }
  next_push_secs_ = data->time + contract_.push_interval->Draw(random_);
}

void Randomization::AfterStep(const mjModel& model, const mjData& data) {
  if (!contract_.command_resampling_time) return;
  if (data.time + model.opt.timestep / 2 < next_command_secs_) return;
  DrawCommand(data.time);
}

void Randomization::DrawCommand(double now_secs) {
  const bool stands = contract_.standing_probability > 0 &&
                      random_.Uniform(0, 1) < contract_.standing_probability;
  for (size_t i = 0; i < velocity_command_.size(); ++i) {
    const std::optional<DrawRange>& range = contract_.velocity_command[i];
    velocity_command_[i] = range && !stands ? range->Draw(random_) : 0;
  }
  if (contract_.command_resampling_time) {
    next_command_secs_ =
        now_secs + contract_.command_resampling_time->Draw(random_);
  }
}

void Randomization::Read(StateReader* from) {
  Transfer(*from, *this);
  if (contract_.terrain && *contract_.terrain > Terrain::kStairs) {
    from->Refuse();
  }
}

}  // namespace tandem

#include "engine_adapter/mujoco/randomization/pushes.h"

#include <array>
#include <cmath>

namespace tandem {
namespace {

// Along x and y, of length 1.
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

}  // namespace

void Pushes::Start(const Contract& contract, EnvRandom& random) {
  if (contract.push_interval) next_secs_ = contract.push_interval->Draw(random);
}

void Pushes::Push(const Contract& contract, const FloatingBase& base,
                  EnvRandom& random, const mjModel& model, mjData* data) {
  if (!contract.push_interval || !contract.push_velocity) return;
  if (!base.MovesLevel()) return;
  // Half a time step: what adding up steps loses must not cost a whole one.
  if (data->time + model.opt.timestep / 2 < next_secs_) return;
  const double velocity = contract.push_velocity->Draw(random);
  const std::array<double, 2> direction = DrawDirection(base, random);
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
  next_secs_ = data->time + contract.push_interval->Draw(random);
}

}  // namespace tandem

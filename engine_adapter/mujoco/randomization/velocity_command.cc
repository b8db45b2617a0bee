#include "engine_adapter/mujoco/randomization/velocity_command.h"

namespace tandem {

void VelocityCommand::Start(const Contract& contract, EnvRandom& random) {
  Draw(contract, random, /*now_secs=*/0);
}

void VelocityCommand::Update(const Contract& contract, EnvRandom& random,
                             double now_secs, double tolerance_secs) {
  if (!contract.command_resampling_time) return;
  if (now_secs + tolerance_secs < next_secs_) return;
  Draw(contract, random, now_secs);
}

void VelocityCommand::Draw(const Contract& contract, EnvRandom& random,
                           double now_secs) {
  const bool stands = contract.standing_probability > 0 &&
                      random.Uniform(0, 1) < contract.standing_probability;
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::optional<DrawRange>& range = contract.velocity_command[i];
    values_[i] = range && !stands ? range->Draw(random) : 0;
  }
  if (contract.command_resampling_time) {
    next_secs_ = now_secs + contract.command_resampling_time->Draw(random);
  }
}

}  // namespace tandem

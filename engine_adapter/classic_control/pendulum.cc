#include "engine_adapter/classic_control/pendulum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/environment_engine.h"

namespace tandem {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr float kLargestTorque = 2;
constexpr double kLargestSpeed = 8;
constexpr double kStepSecs = 0.05;
constexpr double kDefaultGravity = 10;
constexpr uint32_t kMaxEpisodeSteps = 200;

// As Python's %: of the divisor's sign, which is positive here.
double Modulo(double value, double divisor) {
  const double remainder = std::fmod(value, divisor);
  return remainder < 0 ? remainder + divisor : remainder;
}

// The same angle within -pi .. pi.
double Normalized(double angle) { return Modulo(angle + kPi, 2 * kPi) - kPi; }

// Operations are in Gymnasium's order and width, in which they round alike:
// what is made of the torque alone is float32. Mass and length are 1.
class Pendulum final : public Environment {
 public:
  explicit Pendulum(double gravity) : gravity_(gravity) {}

  void Reset(EnvRandom& random, const EnvironmentRow& row) override {
    theta_ = random.Uniform(-kPi, kPi);
    theta_dot_ = random.Uniform(-1, 1);
    Observe(row.obs);
  }

  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override {
    const float action = actions[0];
    const float torque = std::clamp(action, -kLargestTorque, kLargestTorque);
    const double angle = Normalized(theta_);
    const float torque_cost = 0.001F * (torque * torque);
    const double cost = angle * angle + 0.1 * (theta_dot_ * theta_dot_) +
                        static_cast<double>(torque_cost);
    const float torque_acc = 3.0F * torque;
    const double acc =
        3 * gravity_ / 2 * std::sin(theta_) + static_cast<double>(torque_acc);
    theta_dot_ =
        std::clamp(theta_dot_ + acc * kStepSecs, -kLargestSpeed, kLargestSpeed);
    theta_ += theta_dot_ * kStepSecs;
    Observe(row.obs);
    return {.reward = static_cast<float>(-cost), .terminated = false};
  }

 private:
  void Observe(std::span<float> obs) const {
    obs[0] = static_cast<float>(std::cos(theta_));
    obs[1] = static_cast<float>(std::sin(theta_));
    obs[2] = static_cast<float>(theta_dot_);
  }

  const double gravity_;
  double theta_ = 0;
  double theta_dot_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakePendulum(TaskRequest request) {
  const double gravity = request.options.Number("g", kDefaultGravity);
  if (absl::Status status = request.options.Finish(); !status.ok()) {
    return status;
  }
  std::vector<std::unique_ptr<Environment>> environments(request.num_envs);
  for (std::unique_ptr<Environment>& environment : environments) {
    environment = std::make_unique<Pendulum>(gravity);
  }
  return std::make_unique<EnvironmentEngine>(
      EngineSchema{
          .task = "Pendulum-v1",
          .obs_size = 3,
          .act_size = 1,
          .description =
              {.observation_space = BoxSpace{.low = {-1, -1, -kLargestSpeed},
                                             .high = {1, 1, kLargestSpeed}},
               .action_space =
                   BoxSpace{.low = {-kLargestTorque}, .high = {kLargestTorque}},
               .max_episode_steps =
                   request.max_episode_steps.value_or(kMaxEpisodeSteps)},
          // As Observe writes them, and as Gymnasium calls them.
          .observation_names = {"x = cos(theta)", "y = sin(theta)",
                                "angular velocity"},
          .action_names = {"torque"}},
      std::move(environments), request.threads,
      EnvironmentFittings{.step_secs = kStepSecs});
}

}  // namespace tandem

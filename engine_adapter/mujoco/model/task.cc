#include "engine_adapter/mujoco/model/task.h"

#include <string>

namespace tandem {

void PutVelocityCommand(std::span<const mjtNum, 3> command, ObsWriter& obs) {
  constexpr auto kName = [](const mjModel&, int index) -> std::string {
    constexpr std::array kParts = {"x", "y", "yaw"};
    return kParts[static_cast<size_t>(index)];
  };
  obs.Put({"velocity_command", kName}, command);
}

Task::Task(TaskSetup& setup)
    : model_(setup.shared_model()),
      frame_skip_(setup.frame_skip()),
      step_secs_(model_->opt.timestep * frame_skip_),
      state_(setup) {}

void Task::Simulate(mjData* data) const {
  for (uint32_t i = 0; i < frame_skip_; ++i) mj_step(model_.get(), data);
  mj_rnePostConstraint(model_.get(), data);
}

}  // namespace tandem

// A task of any MJCF file. It observes qpos, then qvel. Rewards are 0. It never
// terminates. mujoco_tasks.h has its options.
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class MjcfModel final : public NoisyStartTask {
 public:
  explicit MjcfModel(TaskSetup& setup)
      : NoisyStartTask(setup, 0, AddNormal, 0),
        velocity_command_(setup.options().Bool("velocity_command", false)) {}

  bool FollowsVelocityCommand() const override { return velocity_command_; }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& /*infos*/) const override {
    Simulate(data);
    return {};
  }

 private:
  bool velocity_command_;
};

}  // namespace

const TaskType kMjcfModel = {.name = "",
                             .xml_file = "",
                             .frame_skip = 1,
                             .max_episode_steps = 0,
                             .make = MakeTask<MjcfModel>};

}  // namespace tandem

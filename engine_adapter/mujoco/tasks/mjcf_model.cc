// A task of any MJCF file. It observes qpos, then qvel. Rewards are 0. It never
// terminates. mujoco_tasks.h has its options.
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class MjcfModel final : public Task {
 public:
  explicit MjcfModel(TaskSetup& setup) : Task(setup) {
    reset_noise_scale_ = setup.options().Number("reset_noise_scale", 0, 0);
    velocity_command_ = setup.options().Bool("velocity_command", false);
  }

  void Reset(mjData* data, EnvRandom& random) const override {
    AddUniform(Qpos(data), reset_noise_scale_, random);
    AddNormal(Qvel(data), reset_noise_scale_, random);
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    obs.Put({"qpos", PositionName}, Qpos(data));
    obs.Put({"qvel", VelocityName}, Qvel(data));
  }

  bool FollowsVelocityCommand() const override { return velocity_command_; }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& /*infos*/) const override {
    Simulate(data);
    return {};
  }

 private:
  double reset_noise_scale_;
  bool velocity_command_;
};

}  // namespace

const TaskType kMjcfModel = {.name = "",
                             .xml_file = "",
                             .frame_skip = 1,
                             .max_episode_steps = 0,
                             .make = MakeTask<MjcfModel>};

}  // namespace tandem

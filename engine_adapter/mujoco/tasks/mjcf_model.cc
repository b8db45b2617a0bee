// A task of any MJCF file. It observes qpos, then qvel. Rewards are 0. It never
// terminates. mujoco_tasks.h has its options.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

// Warns of a start that the model's author probably does not mean.
void WarnOfStart(const mjModel& model, int keyframe) {
  if (keyframe < 0 && model.nkey > 0) {
    WarnOnce(absl::StrCat(
        "warning: the model has ", model.nkey,
        " keyframes, but episodes start in its joints' reference positions. "
        "The option keyframe takes another start by index or name: ",
        OwnNames(model, mjOBJ_KEY, model.nkey)));
  }
  const mjtNum* const start =
      keyframe < 0 ? model.qpos0
                   : model.key_qpos + mjtSize{keyframe} * model.nq;
  std::vector<std::string> outside;
  for (int joint = 0; joint < model.njnt; ++joint) {
    const int type = model.jnt_type[joint];
    if (model.jnt_limited[joint] == 0 ||
        (type != mjJNT_HINGE && type != mjJNT_SLIDE)) {
      continue;
    }
    const mjtNum value = start[model.jnt_qposadr[joint]];
    const mjtNum* const range = model.jnt_range + mjtSize{2} * joint;
    if (value >= range[0] && value <= range[1]) continue;
    outside.push_back(
        absl::StrCat(PositionName(model, model.jnt_qposadr[joint]), " at ",
                     value, " (", range[0], " to ", range[1], ")"));
  }
  if (outside.empty()) return;
  const size_t listed = std::min<size_t>(outside.size(), 4);
  WarnOnce(absl::StrCat("warning: episodes start with ", outside.size(),
                        " joints outside their ranges: ",
                        absl::StrJoin(std::span(outside).first(listed), ", "),
                        listed < outside.size() ? ", ..." : "",
                        ". Use another keyframe, or `ref` in the model"));
}

class MjcfModel final : public NoisyStartTask {
 public:
  explicit MjcfModel(TaskSetup& setup)
      : NoisyStartTask(setup, 0, AddNormal, 0),
        keyframe_(setup.Keyframe(setup.options().TextOrIndex("keyframe", ""))),
        velocity_command_(setup.options().Bool("velocity_command", false)) {
    WarnOfStart(model(), keyframe_);
  }

  void Reset(mjData* data, EnvRandom& random) const override {
    if (keyframe_ >= 0) mj_resetDataKeyframe(&model(), data, keyframe_);
    NoisyStartTask::Reset(data, random);
  }

  bool FollowsVelocityCommand() const override { return velocity_command_; }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& /*infos*/) const override {
    Simulate(data);
    return {};
  }

 private:
  int keyframe_;  // -1: the model's initial state
  bool velocity_command_;
};

}  // namespace

const TaskType kMjcfModel = {.name = "",
                             .xml_file = "",
                             .frame_skip = 1,
                             .max_episode_steps = 0,
                             .make = MakeTask<MjcfModel>,
                             .has_rewards = false};

}  // namespace tandem

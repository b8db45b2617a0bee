// Task: the initial state, step, observations, rewards and termination of a
// task on a model.
//
// Data flow: model + state (mjData) + action -> state, reward, end, infos; and
// state -> obs.
// Ownership: all environments and threads share one Task. Every call is const
// and works on the caller's mjData.
//
//   class Reacher final : public Task { ... };  // tasks/reacher.cc, with:
//   const TaskType kReacher = {.name = "Reacher-v5",
//                              .xml_file = "reacher.xml",
//                              .frame_skip = 2,
//                              .max_episode_steps = 50,
//                              .make = MakeTask<Reacher>};

#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/row_writer.h"
#include "engine_adapter/mujoco/model/state_arrays.h"
#include "engine_adapter/mujoco/model/task_setup.h"

namespace tandem {

// The noise that Gymnasium's tasks add to the initial state. Draws once for
// each value, in their order, also if `scale` is 0.
inline void AddUniform(std::span<mjtNum> values, double scale,
                       EnvRandom& random) {
  for (mjtNum& value : values) value += random.Uniform(-scale, scale);
}

inline void AddNormal(std::span<mjtNum> values, double scale,
                      EnvRandom& random) {
  for (mjtNum& value : values) value += scale * random.StandardNormal();
}

// Gymnasium's default_camera_config, with its renderer's values for missing
// entries.
struct CameraView {
  std::optional<double> distance = {};  // metres; none: the model's extent
  // Metres; none: the median of the geoms' positions in the first image.
  std::optional<std::array<double, 3>> lookat = {};
  double elevation = -45;  // degrees
  // The body that a following camera follows; 0: none.
  int follow_body = 0;
};

// The default command: stand still.
inline constexpr std::array<mjtNum, 3> kNoVelocityCommand = {0, 0, 0};

// Writes the last values in the observation of a task that follows a velocity
// command.
void PutVelocityCommand(std::span<const mjtNum, 3> command, ObsWriter& obs);

// Calls may throw MujocoError. Only the constructor may allocate.
class Task {
 public:
  // Reads the options and checks the model. If `setup` then has an error, the
  // caller destroys the task and calls nothing else.
  explicit Task(TaskSetup& setup);
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const mjModel& model() const { return *model_; }
  const std::shared_ptr<const mjModel>& shared_model() const { return model_; }
  // Simulated time for one action.
  double step_secs() const { return step_secs_; }

  // Starts an episode in `data`. The caller calls mj_resetData before and
  // mj_forward after it.
  virtual void Reset(mjData* data, EnvRandom& random) const = 0;

  // Puts the same labels and number of values in each call.
  virtual void Observe(const mjData& data, ObsWriter& obs) const = 0;

  // Whether the observation ends with the environment's velocity command: see
  // randomization/randomization.h.
  virtual bool FollowsVelocityCommand() const { return false; }

  // Puts the infos of Gymnasium's reset(). They are also the first infos of a
  // step.
  virtual void PutResetInfos(const mjData& /*data*/,
                             InfoWriter& /*infos*/) const {}

  // Puts them, then the arrays of the option "state".
  void PutInfosOfState(const mjData& data, InfoWriter& infos) const {
    PutResetInfos(data, infos);
    state_.Put(data, infos);
  }

  // What the next Step reads of `data` before it simulates, besides the
  // integration state of MuJoCo: values that the last step has computed.
  virtual std::span<mjtNum> ReadBeforeStep(mjData* /*data*/) const {
    return {};
  }

  // Steps. The caller has copied `action` to `data`->ctrl. Puts the step's
  // other infos.
  virtual StepOutcome Step(std::span<const float> action, mjData* data,
                           InfoWriter& infos) const = 0;

 protected:
  // Gymnasium's do_simulation: frame_skip steps, then the body forces that
  // mj_step does not compute.
  void Simulate(mjData* data) const;
  // Returns the mean velocity of a step from `before` to `after`.
  double Velocity(double before, double after) const {
    return (after - before) / step_secs_;
  }

  // Lower and upper bound, both exclusive.
  using Range = std::pair<double, double>;
  static bool IsWithin(double value, const Range& range) {
    return range.first < value && value < range.second;
  }

  // Returns x, y, z of the body's frame.
  static std::span<const mjtNum, 3> Place(const mjData& data, int body) {
    return std::span<const mjtNum, 3>(data.xpos + mjtSize{3} * body, 3);
  }
  std::span<const mjtNum> Qpos(const mjData& data) const {
    return {data.qpos, static_cast<size_t>(model_->nq)};
  }
  std::span<const mjtNum> Qvel(const mjData& data) const {
    return {data.qvel, static_cast<size_t>(model_->nv)};
  }
  std::span<mjtNum> Qpos(mjData* data) const {
    return {data->qpos, static_cast<size_t>(model_->nq)};
  }
  std::span<mjtNum> Qvel(mjData* data) const {
    return {data->qvel, static_cast<size_t>(model_->nv)};
  }

 private:
  std::shared_ptr<const mjModel> model_;
  uint32_t frame_skip_;
  double step_secs_;
  StateArrays state_;
};

// A task with noise on the model's initial state, which observes positions and
// velocities.
class NoisyStartTask : public Task {
 public:
  void Reset(mjData* data, EnvRandom& random) const override {
    AddUniform(Qpos(data), reset_noise_scale_, random);
    velocity_noise_(Qvel(data), reset_noise_scale_, random);
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    PutPositions(data, obs);
    obs.Put({"qvel", VelocityName}, Qvel(data));
  }

 protected:
  // AddUniform or AddNormal.
  using Noise = void (*)(std::span<mjtNum>, double, EnvRandom&);

  // Reads the option for the noise's scale. If `root_positions` is not 0, reads
  // the option to omit that many first positions from the observation.
  NoisyStartTask(TaskSetup& setup, double noise_scale, Noise velocity_noise,
                 size_t root_positions)
      : Task(setup),
        velocity_noise_(velocity_noise),
        reset_noise_scale_(
            setup.options().Number("reset_noise_scale", noise_scale, 0)) {
    if (root_positions > 0 &&
        setup.options().Bool("exclude_current_positions_from_observation",
                             true)) {
      hidden_positions_ = root_positions;
    }
  }

  void PutPositions(const mjData& data, ObsWriter& obs) const {
    obs.Put({"qpos", PositionName, hidden_positions_},
            Qpos(data).subspan(hidden_positions_));
  }

 private:
  Noise velocity_noise_;
  double reset_noise_scale_;
  size_t hidden_positions_ = 0;
};

// A row of the table of tasks: Gymnasium's registration and defaults.
struct TaskType {
  const char* name;  // at most 63 bytes
  const char* xml_file;
  uint32_t frame_skip;
  uint32_t max_episode_steps;  // 0: no limit
  std::unique_ptr<Task> (*make)(TaskSetup& setup);
  std::optional<CameraView> camera = {};  // none: the model file's view
  bool has_rewards = true;
};

template <typename T>
std::unique_ptr<Task> MakeTask(TaskSetup& setup) {
  return std::make_unique<T>(setup);
}

}  // namespace tandem

// Task: what one task adds to a model: how an episode starts, what a step is,
// what is observed, rewarded, and ends it.
//
// Data flow: model + state (mjData) + action -> state, reward, end, infos; and
// state -> obs.
// Ownership: all environments and threads share one Task, so every call is
// const and works on the mjData it is given.
//
//   class Reacher final : public Task { ... };  // tasks/reacher.cc, with:
//   const TaskType kReacher = {.name = "Reacher-v5",
//                              .xml_file = "reacher.xml",
//                              .frame_skip = 2,
//                              .max_episode_steps = 50,
//                              .make = MakeTask<Reacher>};

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_H_

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
#include "engine_adapter/mujoco/model/task_setup.h"

namespace tandem {

// The noise of Gymnasium's tasks on the state that an episode starts from.
// One draw for each value, in their order, also where `scale` is 0.
inline void AddUniform(std::span<mjtNum> values, double scale,
                       EnvRandom& random) {
  for (mjtNum& value : values) value += random.Uniform(-scale, scale);
}

inline void AddNormal(std::span<mjtNum> values, double scale,
                      EnvRandom& random) {
  for (mjtNum& value : values) value += scale * random.StandardNormal();
}

// What Gymnasium's default_camera_config says; where it is silent, what its
// renderer then takes.
struct CameraView {
  std::optional<double> distance = {};  // metres; none: the model's extent
  // Metres; none: the median of the geoms' positions when first drawn.
  std::optional<std::array<double, 3>> lookat = {};
  double elevation = -45;  // degrees
  // A camera that follows goes along with this body; 0: it stays.
  int follow_body = 0;
};

// Stand still: the command by default.
inline constexpr std::array<mjtNum, 3> kNoVelocityCommand = {0, 0, 0};

// What is observed last where a task follows a velocity command.
void PutVelocityCommand(std::span<const mjtNum, 3> command, ObsWriter& obs);

// Calls may throw MujocoError. None may allocate but the constructor.
class Task {
 public:
  // Reads its options and says what it needs of the model. Where `setup` then
  // has an error, the task is destroyed and nothing else is called.
  explicit Task(TaskSetup& setup);
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const mjModel& model() const { return *model_; }
  const std::shared_ptr<const mjModel>& shared_model() const { return model_; }
  // Of simulated time, for one action.
  double step_secs() const { return step_secs_; }

  // Starts an episode in `data`, which mj_resetData has just reset. mj_forward
  // follows.
  virtual void Reset(mjData* data, EnvRandom& random) const = 0;

  // The same labels and number of values each time.
  virtual void Observe(const mjData& data, ObsWriter& obs) const = 0;

  // Whether the environment's velocity command follows what is observed: see
  // randomization/randomization.h.
  virtual bool FollowsVelocityCommand() const { return false; }

  // The infos that Gymnasium's reset() gives; they are a step's first ones,
  // too.
  virtual void PutResetInfos(const mjData& /*data*/,
                             InfoWriter& /*infos*/) const {}

  // Steps; `data`->ctrl is `action` already. Puts the step's other infos.
  virtual StepOutcome Step(std::span<const float> action, mjData* data,
                           InfoWriter& infos) const = 0;

 protected:
  // As Gymnasium's do_simulation: frame_skip steps, then the forces that
  // mj_step leaves out.
  void Simulate(mjData* data) const;
  // Of a step that led from one place to the other.
  double Velocity(double before, double after) const {
    return (after - before) / step_secs_;
  }

  // From the lower to the higher; neither is within.
  using Range = std::pair<double, double>;
  static bool IsWithin(double value, const Range& range) {
    return range.first < value && value < range.second;
  }

  // x, y, z of a body's frame.
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
};

// A task whose episodes start near the model's initial state, and which
// observes positions and velocities.
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

  // Reads the scale of the noise and, if the task can leave the first
  // `root_positions` unobserved, the option to do so.
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

// A row of the table of tasks: what Gymnasium registers, and its defaults.
struct TaskType {
  const char* name;  // at most 63 bytes
  const char* xml_file;
  uint32_t frame_skip;
  uint32_t max_episode_steps;  // 0: no limit
  std::unique_ptr<Task> (*make)(TaskSetup& setup);
  std::optional<CameraView> camera = {};  // none: as the model's file has it
};

template <typename T>
std::unique_ptr<Task> MakeTask(TaskSetup& setup) {
  return std::make_unique<T>(setup);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_TASK_H_

// Task: what one task adds to a model: how an episode starts, what a step is,
// what is observed, rewarded, and ends it.
//
// Data flow: model + state (mjData) + action -> state, reward, end -> obs.
// Ownership: an engine shares one Task between all environments and threads, so
// every call is const and works on the mjData it is given.
//
//   class Reacher final : public Task { ... };    // reacher.h, reacher.cc
//   {"Reacher-v5", &Reacher::Create},             // task_registry.cc

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"

namespace tandem {

// What a user may say about a task; each task documents its own defaults.
struct MujocoTaskOptions {
  std::string assets_folder = {};  // "": where they usually lie
  std::string model_path = {};     // of a task that has no model of its own
  std::optional<double> reset_noise_scale = {};
  std::optional<uint32_t> max_episode_steps = {};  // 0: no limit
};

// Calls may throw MujocoError. None may allocate but the constructor.
class Task {
 public:
  virtual ~Task() = default;

  virtual const std::string& name() const = 0;  // at most 63 bytes
  virtual const mjModel& model() const = 0;
  virtual uint32_t obs_size() const = 0;
  // Steps after which an episode is truncated; 0: never.
  virtual uint32_t max_episode_steps() const = 0;

  // Starts an episode in `data`, which mj_resetData has just reset.
  virtual void Reset(mjData* data, EnvRandom& random) const = 0;
  // Applies `data`->ctrl, which is finite, and steps.
  virtual StepOutcome Step(mjData* data) const = 0;
  virtual void Observe(const mjData& data, std::span<float> obs) const = 0;
};

// As Gymnasium's reset_model of most tasks: positions of the model plus
// uniform noise, then velocities of zero plus normal noise.
void ResetWithNoise(const mjModel& model, double scale, mjData* data,
                    EnvRandom& random);

// As Gymnasium's do_simulation: `frame_skip` steps, then the forces that
// mj_step leaves out.
void Simulate(const mjModel& model, int frame_skip, mjData* data);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_TASK_H_

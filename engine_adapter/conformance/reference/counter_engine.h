// CounterEngine: the smallest engine, as an example and for tests of clients.
// Its observations show the calls that it received.
//
// Data flow: actions -> counts -> obs; services <-> ports <-> counts.
//
//   obs[0]  steps since the environment's last reset
//   obs[1]  action[0] of the last step; 0 after a reset
//   obs[2]  steps since the last seed, or since the engine's start
//   obs[3]  the episode's random number in [0, 1), from the environment's seed
//   obs[4], ...  sum of all actions of the last step, plus the index
//
// An engine with a smaller obs_size has only the first of these. The reward is
// the sum of the step's actions. The service mujoco can replace an action.
//
//   CounterEngine engine({.num_envs = 4, .obs_size = 8, .act_size = 2});

#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine_adapter/conformance/reference/counter_camera.h"
#include "engine_adapter/conformance/reference/counter_ports.h"
#include "engine_adapter/conformance/reference/counter_state.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/scene/fixed_scene.h"

namespace tandem {

class CounterEngine final : public Engine {
 public:
  struct Options {
    uint32_t num_envs = 1;
    uint32_t obs_size = 4;
    uint32_t act_size = 1;
    // The number of steps after which an episode ends; 0: never. If both
    // numbers are equal, the step sets both flags.
    uint32_t terminate_after = 0;
    uint32_t truncate_after = 0;
  };

  explicit CounterEngine(const Options& options);

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override;
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override;

  // Each port is optional: an engine without one lacks the port's services.
  EnginePorts ports() override {
    return {.randomization = &randomization_,
            .mujoco = &joints_,
            .scene = &scene_,
            .camera = &camera_,
            .debug = &marks_,
            .states = &state_port_,
            .own = &methods_};
  }
  SceneSource* scene() override { return &live_scene_; }
  void ClearClientState() override;
  double step_secs() const override;

 private:
  void Observe(const CounterState::Env& env, float first_action,
               float action_sum, std::span<float> obs) const;

  Options options_;
  EngineSchema schema_;
  CounterState state_;
  CounterRandomization randomization_;
  CounterJoints joints_;
  CounterScene scene_;
  FixedScene live_scene_;
  DebugCanvas marks_;
  CounterMethods methods_;
  CounterStates state_port_;
  CounterCamera camera_;  // last: its thread ends first
};

}  // namespace tandem

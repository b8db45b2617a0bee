// CountingEngine: an engine whose observations contain the number of its steps
// and the last action. A client can thus detect a lost or repeated step.
//
// Data flow: actions, private counts -> obs {steps, echo of the action, resets,
// seed}, reward = the echo.
// Ownership: one engine process or thread.
//
//   CountingEngine engine(/*num_envs=*/3, /*episode_steps=*/0);
//   ... EngineHost::Create(&engine, ...) ...
//   const float* row = client.arrays().obs.data() + env * kObsSize;
//   EXPECT_EQ(row[CountingEngine::kSteps], i + 1);

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/engine.h"

namespace tandem {

// Counts are exact up to 2^24, the limit of exact integers in a float.
// Allocates only in its constructor.
class CountingEngine final : public Engine {
 public:
  // Columns of an observation.
  static constexpr uint32_t kSteps = 0;   // since construction
  static constexpr uint32_t kEcho = 1;    // the action that was applied last
  static constexpr uint32_t kResets = 2;  // since construction
  static constexpr uint32_t kSeed = 3;    // of the last reset; -1: none given
  static constexpr uint32_t kObsSize = 4;

  // An episode terminates with its `episode_steps`-th step; 0: never.
  CountingEngine(uint32_t num_envs, uint32_t episode_steps)
      : schema_{.task = "counting",
                .num_envs = num_envs,
                .obs_size = kObsSize,
                .act_size = 1},
        episode_steps_(episode_steps),
        envs_(num_envs) {}

  const EngineSchema& schema() const override { return schema_; }

  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      Env& env = envs_[request.env];
      ++env.resets;
      env.steps_in_episode = 0;
      env.echo = 0;
      env.seed = request.seed ? static_cast<float>(*request.seed) : -1;
      Show(request.env, io.obs);
    }
    return absl::OkStatus();
  }

  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t index : envs) {
      Env& env = envs_[index];
      ++env.steps;
      ++env.steps_in_episode;
      env.echo = io.actions[index];
      Show(index, io.obs);
      io.rewards[index] = env.echo;
      io.terminateds[index] = env.steps_in_episode == episode_steps_ ? 1 : 0;
      io.truncateds[index] = 0;
    }
    return absl::OkStatus();
  }

 private:
  struct Env {
    uint64_t steps = 0;
    uint64_t resets = 0;
    uint32_t steps_in_episode = 0;
    float echo = 0;
    float seed = -1;
  };

  void Show(uint32_t index, std::span<float> obs) const {
    const Env& env = envs_[index];
    float* const row = obs.data() + size_t{index} * kObsSize;
    row[kSteps] = static_cast<float>(env.steps);
    row[kEcho] = env.echo;
    row[kResets] = static_cast<float>(env.resets);
    row[kSeed] = env.seed;
  }

  EngineSchema schema_;
  uint32_t episode_steps_;
  std::vector<Env> envs_;
};

}  // namespace tandem

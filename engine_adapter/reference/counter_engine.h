// CounterEngine: the smallest engine, as an example and for tests of clients.
// Its observations show the calls that it received.
//
// Data flow: actions -> counts -> obs.
//
//   obs[0]  steps since the environment's last reset
//   obs[1]  action[0] of the last step; 0 after a reset
//   obs[2]  steps since the last seed, or since the engine's start
//   obs[3]  the episode's random number in [0, 1), from the environment's seed
//   obs[4], ...  sum of all actions of the last step, plus the index
//
// An engine with a smaller obs_size has only the first of these. The reward is
// the sum of the step's actions.
//
//   CounterEngine engine({.num_envs = 4, .obs_size = 8, .act_size = 2});

#ifndef TANDEM_ENGINE_ADAPTER_REFERENCE_COUNTER_ENGINE_H_
#define TANDEM_ENGINE_ADAPTER_REFERENCE_COUNTER_ENGINE_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"

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

 private:
  struct Env {
    std::mt19937_64 random;
    float episode_number = 0;  // obs[3]
    uint32_t episode_steps = 0;
    uint32_t seed_steps = 0;
  };

  void Observe(const Env& env, float first_action, float action_sum,
               std::span<float> obs) const;

  Options options_;
  EngineSchema schema_;
  std::vector<Env> envs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_REFERENCE_COUNTER_ENGINE_H_

// Environment: a single environment of a task, for engines that write one, not
// many: EnvironmentEngine makes an Engine of any number of them.
//
// Data flow: actions -> Step -> obs, infos, reward, end.
// Ownership: an EnvironmentEngine; one thread at a time calls, not always the
// same. Time limits, seeds and autoreset are the engine's and the host's.
//
//   class Pendulum final : public Environment {
//     void Reset(EnvRandom& random, const EnvironmentRow& row) override;
//     StepOutcome Step(std::span<const float> actions,
//                      const EnvironmentRow& row) override;
//   };

#ifndef TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_H_
#define TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_H_

#include <span>

#include "engine_adapter/core/env_random.h"

namespace tandem {

// One environment's rows of the region's arrays: shared with the client, which
// may scribble over them, so keep your own copy of what you depend on.
struct EnvironmentRow {
  std::span<float> obs;     // [obs_size]
  std::span<double> infos;  // [info_size]
};

struct StepOutcome {
  float reward = 0;
  bool terminated = false;
};

// A call may throw what derives from std::exception; the environment has to be
// fit for either call then. Neither may allocate.
class Environment {
 public:
  virtual ~Environment() = default;

  // Starts an episode. Writes all of `obs`, and of `infos` what is at_reset.
  virtual void Reset(EnvRandom& random, const EnvironmentRow& row) = 0;

  // `actions` ([act_size]) may hold anything, NaN included, and change while
  // it is read. Writes all of `obs` and `infos`. An episode that has ended goes
  // on until it is reset.
  virtual StepOutcome Step(std::span<const float> actions,
                           const EnvironmentRow& row) = 0;

  // As Engine's; Reset follows.
  virtual void ClearClientState() {}
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_H_

// Environment: a single environment of a task. EnvironmentEngine makes an
// Engine of any number of them.
//
// Data flow: actions -> Step -> obs, infos, reward, end.
// Ownership: an EnvironmentEngine owns it. One thread at a time calls it, not
// always the same thread. The engine and the host handle time limits, seeds and
// autoreset.
//
//   class Pendulum final : public Environment {
//     void Reset(EnvRandom& random, const EnvironmentRow& row) override;
//     StepOutcome Step(std::span<const float> actions,
//                      const EnvironmentRow& row) override;
//   };

#pragma once

#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/state_bytes.h"

namespace tandem {

// One environment's rows of the region's arrays. The client shares this memory
// and may overwrite it at any time. So an environment keeps its own copy of
// values that it reads later.
struct EnvironmentRow {
  std::span<float> obs;     // [obs_size]
  std::span<double> infos;  // [info_size]
};

struct StepOutcome {
  float reward = 0;
  bool terminated = false;
};

// Reset and Step may throw an exception derived from std::exception. After
// that, either call must still be possible. Neither call may allocate.
class Environment {
 public:
  virtual ~Environment() = default;

  // Starts an episode. Writes all of `obs`, and the infos that have at_reset.
  virtual void Reset(EnvRandom& random, const EnvironmentRow& row) = 0;

  // `actions` ([act_size]) may hold any value, NaN included, and may change
  // during the call. Writes all of `obs` and `infos`. After the end of an
  // episode the environment continues until a reset.
  virtual StepOutcome Step(std::span<const float> actions,
                           const EnvironmentRow& row) = 0;

  // Writes what decides the environment's future, besides the random stream.
  // kUnsupported, with the reason.
  virtual absl::Status SaveState(StateWriter* to) const = 0;
  // Reads and checks such a state. Nothing changes before a call of the
  // returned function, which puts the state in place by the rules of Reset. It
  // may outlive later calls, but not the environment.
  virtual absl::StatusOr<std::function<void()>> StageState(
      StateReader* from) = 0;

  // As Engine::ClearClientState; a Reset follows.
  virtual void ClearClientState() {}
};

// An environment whose state is all of its members, or some: the static
// E::Transfer lists them (state_bytes.h). E is copied as a whole.
template <typename E>
class CopiedEnvironment : public Environment {
 public:
  absl::Status SaveState(StateWriter* to) const final {
    E::Transfer(*to, static_cast<const E&>(*this));
    return absl::OkStatus();
  }
  absl::StatusOr<std::function<void()>> StageState(StateReader* from) final {
    E* const own = static_cast<E*>(this);
    E next = *own;
    E::Transfer(*from, next);
    TANDEM_RETURN_IF_ERROR(from->Finish());
    return [own, next] { *own = next; };
  }
};

}  // namespace tandem

// ExchangeRunner: turns an exchange into calls on an Engine.
//
// Data flow: reset flags, kind, autoreset mode -> Engine::Reset and Step ->
// rewards, dones, final_obs, final_infos of the region.
// Ownership: the host's; it keeps, privately, which episodes have ended.
//
//   ExchangeRunner runner(&engine, &side.arrays());
//   absl::Status status = runner.Run(side.kind(), side.autoreset_mode());

#ifndef TANDEM_ENGINE_ADAPTER_CORE_EXCHANGE_RUNNER_H_
#define TANDEM_ENGINE_ADAPTER_CORE_EXCHANGE_RUNNER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"
#include "schema/layout/lrbc.h"
#include "transport/session/step_arrays.h"

namespace tandem {

// Not thread-safe. Run allocates nothing, unless the engine does or fails.
class ExchangeRunner {
 public:
  // Both outlive it.
  ExchangeRunner(Engine* engine, const StepArrays* arrays);

  // Resets every environment, environment i with seed `*first_seed + i` if one
  // is given; zeroes rewards and flags. Engine's errors.
  absl::Status ResetAll(std::optional<uint64_t> first_seed);

  // Resets the flagged environments and, for kStep, steps all others; then what
  // the autoreset mode asks for. Where an environment was reset its reward and
  // flags are 0. For kResetOnly the rows of all others stay as they were.
  // Engine's errors; some environments may have advanced then.
  absl::Status Run(ExchangeKind kind, AutoresetMode autoreset);

 private:
  absl::Status ResetListed();
  absl::Status ResetEngine();
  absl::Status Step(std::span<const uint32_t> envs, AutoresetMode autoreset);

  Engine* engine_;
  const StepArrays* arrays_;
  std::vector<ResetRequest> to_reset_;
  std::vector<uint32_t> some_to_step_;  // when not all are
  std::vector<uint32_t> all_;
  std::vector<uint8_t> reset_next_;  // NEXT_STEP: the episode has ended
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_EXCHANGE_RUNNER_H_

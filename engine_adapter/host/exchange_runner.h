// ExchangeRunner: executes an exchange by calls of an Engine.
//
// Data flow: reset flags, kind, autoreset mode -> Engine::Reset and Step ->
// rewards, dones, final_obs, final_infos of the region.
// Ownership: the host owns it. Its private memory holds the ends of episodes,
// and the results of steps without an exchange.
//
//   ExchangeRunner runner(&engine, &side.arrays());
//   absl::Status status = runner.Run(side.kind(), side.autoreset_mode());

#ifndef TANDEM_ENGINE_ADAPTER_HOST_EXCHANGE_RUNNER_H_
#define TANDEM_ENGINE_ADAPTER_HOST_EXCHANGE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"
#include "schema/layout/lrbc.h"
#include "transport/session/step_arrays.h"

namespace tandem {

// Not thread-safe. Run allocates nothing, unless the engine allocates or fails.
class ExchangeRunner {
 public:
  // `engine` and `arrays` must outlive the runner.
  ExchangeRunner(Engine* engine, const StepArrays* arrays);

  // Resets every environment; zeroes rewards and flags. With a seed,
  // environment i gets the seed `*first_seed + i`. Errors: the engine's.
  absl::Status ResetAll(std::optional<uint64_t> first_seed);

  // Resets the flagged environments. For kStep, steps all others, and then does
  // the autoresets of the mode. Reward and flags of a reset environment are 0.
  // For kResetOnly the rows of all others do not change. Errors: the engine's;
  // some environments may have advanced then.
  absl::Status Run(ExchangeKind kind, AutoresetMode autoreset);

  // Steps all environments once, without an exchange; the region's arrays do
  // not change. The engine sees the same calls as for kStep without reset
  // flags. The next step of an environment in an exchange includes the results:
  // the rewards are added, and the flags are set if an episode ended. For
  // kSameStep that step also writes final_obs and final_infos. If the exchange
  // resets the environment, the results are dropped. Errors: the engine's.
  absl::Status RunUnrequestedStep(std::span<const float> actions,
                                  AutoresetMode autoreset);
  // Resets these environments now, without an exchange, and drops their
  // unreported results. Errors: the engine's.
  absl::Status ResetUnrequested(std::span<const ResetRequest> requests);
  // The results of the last RunUnrequestedStep.
  const StepArrays& accumulated_arrays() const { return accumulated_->arrays; }

 private:
  // Arrays like the region's, in private memory, and the unreported results.
  struct Accumulated {
    explicit Accumulated(const StepArrays& like);
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<uint8_t> flags;
    StepArrays arrays;
    std::vector<float> rewards;  // sums
    std::vector<uint8_t> terminateds;
    std::vector<uint8_t> truncateds;
    bool any = false;  // whether the three above have results
    void Clear(uint32_t env);
  };

  Accumulated& TheAccumulated();
  absl::Status RunOn(const StepArrays& arrays, ExchangeKind kind,
                     AutoresetMode autoreset);
  absl::Status ResetListed(const StepArrays& arrays);
  absl::Status ResetEngine(const StepArrays& arrays);
  absl::Status Step(std::span<const uint32_t> envs, AutoresetMode autoreset,
                    const StepArrays& arrays);
  void ReportAccumulated(ExchangeKind kind);

  Engine* engine_;
  const StepArrays* arrays_;
  std::vector<ResetRequest> to_reset_;
  std::vector<uint32_t> some_to_step_;  // if some are reset
  std::vector<uint32_t> all_;
  std::vector<uint8_t> reset_next_;  // NEXT_STEP: 1: the episode has ended
  uint32_t to_reset_next_ = 0;       // the number of 1s in it
  std::unique_ptr<Accumulated> accumulated_;  // made at first use
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_EXCHANGE_RUNNER_H_

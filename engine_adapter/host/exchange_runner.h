// ExchangeRunner: turns an exchange into calls on an Engine.
//
// Data flow: reset flags, kind, autoreset mode -> Engine::Reset and Step ->
// rewards, dones, final_obs, final_infos of the region.
// Ownership: the host's; it keeps, privately, which episodes have ended, and
// what came of steps that no exchange asked for.
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

  // Steps all environments once, without an exchange, as kStep would without
  // reset flags: the region's arrays stay as they are. Its rewards are added to
  // those of the environment's next step in an exchange, and where it ended an
  // episode, that step's flags (and, for kSameStep, final_obs and final_infos)
  // say so, unless that exchange resets the environment. Engine's errors.
  absl::Status RunUnrequestedStep(std::span<const float> actions,
                                  AutoresetMode autoreset);
  // Resets these environments now, without an exchange: what they came to
  // before is forgotten. Engine's errors.
  absl::Status ResetUnrequested(std::span<const ResetRequest> requests);
  // What RunUnrequestedStep did last.
  const StepArrays& accumulated_arrays() const { return accumulated_->arrays; }

 private:
  // As a region's, in memory of its own, with what was not reported yet.
  struct Accumulated {
    explicit Accumulated(const StepArrays& like);
    std::vector<float> floats;
    std::vector<double> doubles;
    std::vector<uint8_t> flags;
    StepArrays arrays;
    std::vector<float> rewards;  // sums
    std::vector<uint8_t> terminateds;
    std::vector<uint8_t> truncateds;
    bool any = false;  // of the three above
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
  std::vector<uint32_t> some_to_step_;  // when not all are
  std::vector<uint32_t> all_;
  std::vector<uint8_t> reset_next_;  // NEXT_STEP: the episode has ended
  uint32_t to_reset_next_ = 0;       // how many of those are 1
  std::unique_ptr<Accumulated> accumulated_;  // made when there is such a step
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_EXCHANGE_RUNNER_H_

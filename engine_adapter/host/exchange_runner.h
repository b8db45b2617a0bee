// ExchangeRunner: divides an exchange into work for an engine.
//
// Data flow: reset flags, kind, autoreset mode -> EngineWork -> the engine ->
// Done -> rewards, dones, final_obs, final_infos of the region, and the fields
// of the roles kFinalObs and kReward.
// Ownership: the host owns it. Its private memory holds the ends of episodes,
// and the results of steps without an exchange.
//
//   ExchangeRunner runner(&side.arrays());
//   runner.Begin(side.kind(), side.autoreset_mode());
//   while (const EngineWork* work = runner.work()) {
//     ... reset or step as `work` says, now or later ...
//     runner.Done(status);
//   }
//   if (runner.status().ok()) ...

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/state_rows.h"
#include "engine_adapter/engine.h"
#include "schema/layout/lrbc.h"
#include "transport/step_arrays.h"

namespace tandem {

// States: idle, working. Begin...: idle -> working, or idle if there is nothing
// to do. Done: working -> working with the next work, or idle after the last.
// Not thread-safe. Allocates nothing in an exchange, unless the engine fails.
class ExchangeRunner {
 public:
  // `arrays` must outlive the runner.
  explicit ExchangeRunner(const StepArrays* arrays);

  // Arrays outside of the region, such as on a GPU, whose rows the runner
  // changes as it changes those of the region. An error fails the work.
  struct OtherArrays {
    using Change = std::function<absl::Status(std::span<const uint32_t> envs)>;
    Change keep_final;    // keeps observations of these, before their reset
    Change zero_rewards;  // of these, before a reset that is no autoreset
  };
  void AlsoChange(OtherArrays others);

  // Resets every environment; zeroes rewards and flags. With a seed,
  // environment i gets the seed `*first_seed + i`.
  void BeginResetAll(std::optional<uint64_t> first_seed);

  // Resets the flagged environments. For kStep, steps all others, and then does
  // the autoresets of the mode. Reward and flags of a reset environment are 0.
  // For kResetOnly the rows of all others do not change; nor do those of
  // environments with the flag kSkip.
  void Begin(ExchangeKind kind, AutoresetMode autoreset);

  // Steps all environments once, without an exchange; the region's arrays do
  // not change. The engine gets the same work as for kStep without reset flags.
  // The next step of an environment in an exchange includes the results: the
  // rewards are added, and the flags are set if an episode ended. For kSameStep
  // that step also writes final_obs and final_infos. If the exchange resets the
  // environment, the results are dropped. `actions` must stay until the end.
  // Not for arrays with fields, of which there are no private copies.
  void BeginUnrequestedStep(std::span<const float> actions,
                            AutoresetMode autoreset);
  // Resets these environments now, without an exchange, and drops their
  // unreported results. Not for arrays with fields.
  void BeginUnrequestedReset(std::span<const ResetRequest> requests);
  // The rows of saved states. A reset of an environment with staged rows leaves
  // these as its results. Its episode may have ended: NEXT_STEP then resets it
  // in place of the next step, SAME_STEP at once.
  StateRows& state_rows() { return state_rows_; }
  // The results of the last unrequested step.
  const StepArrays& accumulated_arrays() const { return accumulated_->arrays; }

  // Whether the work in progress is that of a step: it began with kStep, or
  // with BeginUnrequestedStep.
  bool steps() const {
    return stage_ != Stage::kIdle && kind_ == ExchangeKind::kStep;
  }
  // What the engine has to do now; nullptr: nothing.
  const EngineWork* work() const {
    return stage_ == Stage::kIdle ? nullptr : &work_;
  }
  // The engine has done work(), or has failed: then there is no more work, and
  // some environments may have advanced.
  void Done(const absl::Status& status);
  // How the last work ended: OK, or the engine's error.
  const absl::Status& status() const { return status_; }

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

  // An observation and its final observation, with arrays of their own.
  struct ObsPair {
    const FieldArray* obs;
    const FieldArray* final_obs;
  };

  enum class Stage : uint8_t { kIdle, kReset, kStep, kAutoreset };

  Accumulated& TheAccumulated();
  void SetTarget(const StepArrays& arrays);
  void BeginOn(const StepArrays& arrays, ExchangeKind kind,
               AutoresetMode autoreset);
  void ResetListed();
  void StepListed(std::span<const uint32_t> envs);
  // Puts the rows of staged states in place of those of resets. Leaves the
  // environments whose episodes had ended in to_reset_; true: they are reset
  // again now.
  bool PutStates();
  void EndReset();
  void EndStep();
  void End();
  // Calls `change`, if there is one, with the environments to reset. False: it
  // failed, which has ended the work.
  bool ChangeOthers(const OtherArrays::Change& change);
  void Accumulate();
  void ReportAccumulated();

  const StepArrays* arrays_;
  std::vector<ObsPair> obs_pairs_;             // of arrays_
  const FieldArray* rewards_field_ = nullptr;  // of arrays_, if it has one
  const StepArrays* target_ = nullptr;  // arrays_, or the accumulated ones
  EngineWork work_;                     // in target_
  Stage stage_ = Stage::kIdle;
  ExchangeKind kind_ = ExchangeKind::kStep;
  AutoresetMode autoreset_ = AutoresetMode::kSameStep;
  absl::Status status_;
  std::vector<ResetRequest> to_reset_;
  std::vector<uint32_t> some_to_step_;  // if some are reset
  std::vector<uint32_t> all_;
  OtherArrays others_;
  std::vector<uint32_t> changed_;    // for them
  std::vector<uint8_t> reset_next_;  // NEXT_STEP: 1: the episode has ended
  uint32_t to_reset_next_ = 0;       // the number of 1s in it
  StateRows state_rows_;
  std::unique_ptr<Accumulated> accumulated_;  // made at first use
};

// Does all work by calls of `engine`.
void RunAll(ExchangeRunner* runner, Engine* engine);

}  // namespace tandem

// Simulation: when an engine's environments are stepped: for each exchange, by
// the wall clock, or while paused one at a time.
//
// Data flow: services agent and scene -> Simulation -> which exchanges
// EngineHost serves and when, and steps that no exchange asked for.
// Ownership: EngineHost's; the thread that steps calls.
//
//   case EngineEvent::kExchange:
//     if (!simulation.Admits(side.kind())) {
//       side.HoldExchange();
//     }
//   ...
//   simulation.Advance();  // once in each turn of the loop
//
//  mode                     an exchange is served        otherwise stepped
//  FAST, DETERMINISTIC      at once                      never
//  REALTIME                 when its step is due         when a step is due
//  any, while paused        by a SingleStep              by a SingleStep
//
// FAST is DETERMINISTIC: an exchange is one step of a fixed length in both. An
// exchange that only resets is served at once in all of them.

#ifndef TANDEM_ENGINE_ADAPTER_HOST_SIMULATION_H_
#define TANDEM_ENGINE_ADAPTER_HOST_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/ports/simulation_port.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/clock.h"
#include "transport/session/engine_side.h"

namespace tandem {

// Not thread-safe.
class Simulation final : public SimulationPort {
 public:
  // All outlive it. kUnsupported: REALTIME, of an engine that does not say how
  // long its steps are.
  static absl::Status Check(const Engine& engine, rpc::SimulationMode mode);
  // Starts in `mode`, which Check has passed.
  Simulation(Engine* engine, EngineSide* side, ExchangeRunner* runner,
             rpc::SimulationMode mode);

  // Whether the exchange that has come is to be served now; one that is not is
  // to be held. Reads a clock in real time only.
  bool Admits(ExchangeKind kind) const {
    if (kind == ExchangeKind::kResetOnly) return true;
    if (paused_) return done_ < wanted_;
    return mode_ != rpc::SimulationMode::REALTIME ||
           MonotonicNanos() >= due_ns_;
  }
  // An exchange was served, with success or without.
  void Served(ExchangeKind kind) {
    NoteChange();
    if (kind == ExchangeKind::kStep) Stepped();
  }

  // Does the step that is due without an exchange, or releases the exchange
  // that was held for it. True: it has stepped, into runner's accumulated
  // arrays. Engine's errors. Without REALTIME and pauses it does nothing.
  absl::StatusOr<bool> Advance();
  // When Advance has something to do: 0 is now, nothing is never.
  std::optional<int64_t> DueNs() const;

  // A client has come or gone, and all is reset: back to the first mode, not
  // paused.
  void Restart();

  rpc::SimulationMode mode() const override { return mode_; }
  absl::Status SetMode(rpc::SimulationMode mode) override;
  bool paused() const override { return paused_; }
  void SetPaused(bool paused) override;
  absl::Status SingleStep(
      uint32_t steps,
      std::function<void(absl::StatusOr<uint32_t>)> done) override;
  absl::Status Reset(std::span<const uint32_t> envs,
                     std::optional<uint64_t> seed) override;
  uint64_t frame_seq() const override { return side_->frame_seq(); }
  uint64_t steps() const override { return steps_; }
  uint64_t changes() const override { return changes_; }
  void NoteChange() override { ++changes_; }

 private:
  void TakeMode(rpc::SimulationMode mode);
  void Stepped();
  void EndSingleSteps(absl::StatusOr<uint32_t> how);
  std::span<const float> HeldActions();

  Engine* engine_;
  EngineSide* side_;
  ExchangeRunner* runner_;
  const rpc::SimulationMode first_mode_;
  const int64_t period_ns_;  // 0: not known
  rpc::SimulationMode mode_;
  bool paused_ = false;
  int64_t due_ns_ = 0;  // of the next step in real time
  uint64_t steps_ = 0;
  uint64_t changes_ = 0;

  // Of the SingleStep under way, if any.
  uint32_t wanted_ = 0;
  uint32_t done_ = 0;
  std::function<void(absl::StatusOr<uint32_t>)> when_done_;

  std::vector<float> held_;  // [num_envs, act_size]: HeldActions' own
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_SIMULATION_H_

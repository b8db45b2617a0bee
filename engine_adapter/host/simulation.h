// Simulation: the times at which an engine's environments are stepped: for each
// exchange, by the wall clock, or one step at a time while paused.
//
// Data flow: services agent and scene -> Simulation -> the time at which
// EngineHost serves an exchange, and steps without an exchange; in a
// SupervisorHost, pauses alone.
// Ownership: EngineHost or SupervisorHost owns it; the thread of the host calls
// it.
//
//   case EngineEvent::kExchange:
//     if (!simulation.Admits(side.kind())) {
//       side.HoldExchange();
//     }
//   ...
//   if (simulation.BeginDueStep()) {  // once in each turn of the loop
//     ... the engine works off the runner's work ...
//     simulation.EndDueStep(runner.status());
//   }
//
//  mode                     an exchange is served        otherwise stepped
//  FAST, DETERMINISTIC      at once                      never
//  REALTIME                 when its step is due         when a step is due:
//                                                        realtime_factor
//                                                        seconds a second
//  any, while paused        by a SingleStep              by a SingleStep
//
// FAST equals DETERMINISTIC: in both, an exchange is one step of a fixed
// length. In all modes a reset-only exchange is served at once.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "engine_adapter/core/state_rows.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/ports/simulation_port.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/session/owner_side.h"

namespace tandem {

// Not thread-safe.
class Simulation final : public SimulationPort {
 public:
  // kUnsupported: REALTIME, if the engine's step length is unknown, or if it
  // has fields.
  static absl::Status Check(const EngineBase& engine, rpc::SimulationMode mode);
  // Starts in `mode`, which Check has accepted. The three pointers must outlive
  // this object. It calls `reset_begun` after a service's reset has given work
  // to `runner`; when that ends, the host calls EndReset. It calls
  // `pause_changed` when a pause of `caller` has begun or ended.
  Simulation(EngineBase* engine, OwnerSide* side, ExchangeRunner* runner,
             rpc::SimulationMode mode, std::function<void()> reset_begun,
             std::function<void(bool begun, size_t caller)> pause_changed = {});

  // Whether to serve the received exchange now; if not, the host holds it.
  // Reads a clock only in real time.
  bool Admits(ExchangeKind kind) const {
    if (kind == ExchangeKind::kResetOnly) return true;
    if (paused_) return done_ < wanted_;
    return mode_ != rpc::SimulationMode::REALTIME ||
           MonotonicNanos() >= due_ns_;
  }
  // The host calls this after each served exchange, also after a failed one.
  void Served(ExchangeKind kind) {
    NoteChange();
    if (kind == ExchangeKind::kStep) Stepped();
  }

  // If a step is due, begins a step without an exchange in the runner, or
  // releases the held exchange. True after such a beginning. Does nothing
  // without REALTIME and pauses.
  bool BeginDueStep();
  // The host calls this when that step has ended; its results are in the
  // runner's accumulated arrays.
  void EndDueStep(const absl::Status& status);
  // The time of BeginDueStep's next work: 0 is now, nullopt is never.
  std::optional<int64_t> DueNs() const;

  // The host calls this when a client attaches or leaves, before the reset.
  // Restores the first mode, and ends a pause that a client made.
  void Restart();

  bool busy() const override { return runner_->work() != nullptr; }
  rpc::SimulationMode mode() const override { return mode_; }
  double realtime_factor() const override { return realtime_factor_; }
  absl::Status SetMode(rpc::SimulationMode mode,
                       double realtime_factor) override;
  bool paused() const override { return paused_; }
  void SetCaller(size_t caller) override { caller_ = caller; }
  void CallerLeft(size_t caller) override;
  void SetPaused(bool paused) override;
  absl::Status SingleStep(
      uint32_t steps,
      std::function<void(absl::StatusOr<uint32_t>)> done) override;
  void Reset(std::span<const uint32_t> envs, std::optional<uint64_t> seed,
             std::function<void(absl::Status)> done) override;
  void EndReset(absl::Status status);
  StateRows* state_rows() override { return &runner_->state_rows(); }
  uint64_t frame_seq() const override { return side_->frame_seq(); }
  uint64_t steps() const override { return steps_; }
  uint64_t changes() const override { return changes_; }
  void NoteChange() override { ++changes_; }

 private:
  void TakeMode(rpc::SimulationMode mode, double realtime_factor);
  void Stepped();
  void StopSingleSteps();
  void EndSingleSteps(absl::StatusOr<uint32_t> how);
  std::span<const float> HeldActions();

  EngineBase* engine_;
  OwnerSide* side_;
  ExchangeRunner* runner_;
  const std::function<void()> reset_begun_;
  const std::function<void(bool begun, size_t caller)> pause_changed_;
  const rpc::SimulationMode first_mode_;
  const double step_ns_;  // of simulated time; 0: unknown
  rpc::SimulationMode mode_;
  double realtime_factor_ = 1;
  int64_t period_ns_ = 0;  // between two steps in real time
  bool paused_ = false;
  size_t caller_ = 0;
  size_t pauser_ = 0;   // of the pause, if any
  int64_t due_ns_ = 0;  // time of the next step in real time
  uint64_t steps_ = 0;
  uint64_t changes_ = 0;

  // The SingleStep in progress, if any.
  size_t stepper_ = 0;  // its caller
  uint32_t wanted_ = 0;
  uint32_t done_ = 0;
  std::function<void(absl::StatusOr<uint32_t>)> when_done_;

  // Of the service's reset in progress, if any.
  std::function<void(absl::Status)> when_reset_;

  std::vector<float> held_;  // [num_envs, act_size]: HeldActions' own
};

}  // namespace tandem

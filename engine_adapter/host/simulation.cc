#include "engine_adapter/host/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/guarded.h"
#include "engine_adapter/engine_ports.h"

namespace tandem {
namespace {

// The largest delay that later steps make up for. So an engine that was stopped
// for an hour does not step for an hour.
constexpr int64_t kMaxDebtNs = 100'000'000;

// The results of steps and resets without an exchange need private arrays,
// which fields and arrays on a GPU do not have.
absl::Status CheckNoFields(const EngineBase& engine, absl::string_view what) {
  const EngineSchema& schema = engine.schema();
  if (schema.fields.empty() && !schema.gpu) return absl::OkStatus();
  return MakeError(
      ErrorCode::kUnsupported,
      absl::StrCat(what, ": expected an engine without ",
                   schema.gpu ? "arrays on a GPU" : "fields", ", found '",
                   schema.task, "', which has ",
                   schema.gpu ? "them" : absl::StrCat(schema.fields.size()),
                   "; it steps and resets only by exchanges"));
}

}  // namespace

absl::Status Simulation::Check(const EngineBase& engine,
                               rpc::SimulationMode mode) {
  if (mode != rpc::SimulationMode::REALTIME) return absl::OkStatus();
  if (engine.step_secs() > 0) {
    return CheckNoFields(engine, "simulation mode REALTIME");
  }
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("simulation mode: expected FAST or "
                                "DETERMINISTIC, found REALTIME, of '",
                                engine.schema().task,
                                "', whose step length is unknown; set its "
                                "step_secs, or omit the mode"));
}

Simulation::Simulation(
    EngineBase* engine, OwnerSide* side, ExchangeRunner* runner,
    rpc::SimulationMode mode, std::function<void()> reset_begun,
    std::function<void(bool begun, size_t caller)> pause_changed)
    : engine_(engine),
      side_(side),
      runner_(runner),
      reset_begun_(std::move(reset_begun)),
      pause_changed_(std::move(pause_changed)),
      first_mode_(mode),
      step_ns_(engine->step_secs() * 1e9) {
  if (engine->schema().images.width != 0) runner->state_rows().IncludeImages();
  TakeMode(mode, 1);
}

void Simulation::TakeMode(rpc::SimulationMode mode, double realtime_factor) {
  mode_ = mode;
  realtime_factor_ = realtime_factor;
  period_ns_ = std::llround(step_ns_ / realtime_factor);
  due_ns_ = MonotonicNanos() + period_ns_;
  side_->SetMode(mode == rpc::SimulationMode::REALTIME ? RegionMode::kInference
                                                       : RegionMode::kTraining);
}

// Called after a step, with or without an exchange.
void Simulation::Stepped() {
  ++steps_;
  if (done_ < wanted_) {
    if (++done_ == wanted_) EndSingleSteps(done_);
  } else if (mode_ == rpc::SimulationMode::REALTIME && !paused_) {
    due_ns_ = std::max(due_ns_ + period_ns_, MonotonicNanos() - kMaxDebtNs);
  }
}

bool Simulation::BeginDueStep() {
  if (paused_ ? done_ >= wanted_
              : mode_ != rpc::SimulationMode::REALTIME ||
                    MonotonicNanos() < due_ns_) {
    return false;
  }
  if (side_->holds_exchange()) {
    side_->ReleaseExchange();
    return false;
  }
  if (side_->HasExchange()) return false;  // the exchange is the step
  std::span<const float> actions;
  const absl::Status held = Guarded([&] {
    actions = HeldActions();
    return absl::OkStatus();
  });
  if (!held.ok()) {  // the engine has not stepped
    EndDueStep(held);
    return false;
  }
  side_->ShowRealTimeStep(true);
  runner_->BeginUnrequestedStep(actions, side_->autoreset_mode());
  return true;
}

void Simulation::EndDueStep(const absl::Status& status) {
  side_->ShowRealTimeStep(false);
  NoteChange();
  if (!status.ok()) EndSingleSteps(status);
  Stepped();
}

std::optional<int64_t> Simulation::DueNs() const {
  if (paused_) {
    return done_ < wanted_ ? std::optional<int64_t>(0) : std::nullopt;
  }
  if (mode_ != rpc::SimulationMode::REALTIME) return std::nullopt;
  return due_ns_;
}

void Simulation::Restart() {
  NoteChange();
  CallerLeft(0);
  TakeMode(first_mode_, 1);
}

absl::Status Simulation::SetMode(rpc::SimulationMode mode,
                                 double realtime_factor) {
  TANDEM_RETURN_IF_ERROR(Check(*engine_, mode));
  if (mode != rpc::SimulationMode::REALTIME) realtime_factor = 1;
  if (mode != mode_ || realtime_factor != realtime_factor_) {
    TakeMode(mode, realtime_factor);
  }
  if (!paused_ && mode != rpc::SimulationMode::REALTIME) {
    side_->ReleaseExchange();
  }
  return absl::OkStatus();
}

void Simulation::SetPaused(bool paused) {
  StopSingleSteps();  // no step begins after a pause, also a repeated one
  const bool changes = paused != paused_;
  if (!changes && (!paused || pauser_ == caller_)) return;
  const size_t caller = paused ? caller_ : pauser_;
  pauser_ = paused ? caller_ : 0;
  side_->ShowPaused(paused, /*by_attendant=*/pauser_ != 0);
  if (pause_changed_) pause_changed_(paused, caller);
  if (!changes) return;
  paused_ = paused;
  due_ns_ = MonotonicNanos() + period_ns_;
  if (!paused) side_->ReleaseExchange();
}

void Simulation::CallerLeft(size_t caller) {
  if (stepper_ == caller) StopSingleSteps();
  if (pauser_ == caller) SetPaused(false);
}

// A step that a ticked engine has begun counts, and then ends the SingleStep.
void Simulation::StopSingleSteps() {
  if (done_ < wanted_ && runner_->steps()) {
    wanted_ = done_ + 1;
  } else {
    EndSingleSteps(done_);
  }
}

absl::Status Simulation::SingleStep(
    uint32_t steps, std::function<void(absl::StatusOr<uint32_t>)> done) {
  TANDEM_RETURN_IF_ERROR(CheckNoFields(*engine_, "single step"));
  if (!paused_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "single step: expected a paused engine, found one that "
                     "runs; pause it first");
  }
  if (when_done_ != nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("single step: expected none in progress, found one with ",
                     wanted_ - done_,
                     " steps left; await its answer, or end it with pause()"));
  }
  stepper_ = caller_;
  wanted_ = steps;
  done_ = 0;
  when_done_ = std::move(done);
  if (steps == 0) EndSingleSteps(0);
  return absl::OkStatus();
}

void Simulation::EndSingleSteps(absl::StatusOr<uint32_t> how) {
  wanted_ = 0;
  done_ = 0;
  if (when_done_ == nullptr) return;
  std::exchange(when_done_, nullptr)(std::move(how));
}

void Simulation::Reset(std::span<const uint32_t> envs,
                       std::optional<uint64_t> seed,
                       std::function<void(absl::Status)> done) {
  const absl::Status allowed = CheckNoFields(*engine_, "reset by an RPC");
  if (!allowed.ok()) {
    done(allowed);
    return;
  }
  std::vector<ResetRequest> requests;
  requests.reserve(envs.size());
  for (const uint32_t env : envs) {
    requests.push_back({.env = env, .seed = {}});
    if (seed) requests.back().seed = *seed + env;
  }
  NoteChange();
  when_reset_ = std::move(done);
  runner_->BeginUnrequestedReset(requests);
  reset_begun_();
}

void Simulation::EndReset(absl::Status status) {
  std::exchange(when_reset_, nullptr)(std::move(status));
}

// Returns the last step's actions, for a step without an exchange. If the
// engine reports its controls, and its actions are controls, it uses these.
// Otherwise it uses the client's array: the actions of the last exchange, or
// those that the client writes at this time.
std::span<const float> Simulation::HeldActions() {
  const MujocoPort* const port = engine_->ports().mujoco;
  const EngineSchema& schema = engine_->schema();
  if (port == nullptr || port->info().actuators.size() != schema.act_size) {
    return side_->arrays().actions;
  }
  held_.resize(size_t{schema.num_envs} * schema.act_size);
  for (uint32_t env = 0; env < schema.num_envs; ++env) {
    std::ranges::copy(port->Controls(env),
                      held_.begin() + ptrdiff_t{env} * schema.act_size);
  }
  return held_;
}

}  // namespace tandem

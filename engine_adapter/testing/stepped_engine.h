// SteppedEngine: an engine whose loop, which services control, the test runs by
// hand.
//
// Data flow: a test -> Exchange, Idle -> the engine's steps.
//
//   SteppedEngine stepped(MakeModelEngine(path, {.num_envs = 3}).value());
//   MujocoService service(stepped.rig.ports().mujoco, &stepped, 3);
//   stepped.Exchange();

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/core/state_rows.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/testing/engine_rig.h"
#include "transport/step_arrays.h"

namespace tandem {

class SteppedEngine final : public SimulationPort {
 public:
  // Resets all environments.
  explicit SteppedEngine(std::unique_ptr<Engine> engine)
      : rig(std::move(engine)),
        rows_(&arrays_, [](uint32_t) { return false; }) {
    arrays_.num_envs = rig.schema().num_envs;
    arrays_.obs_size = rig.schema().obs_size;
    arrays_.act_size = rig.schema().act_size;
    arrays_.info_size =
        static_cast<uint32_t>(rig.infos.size() / arrays_.num_envs);
    arrays_.obs = rig.obs;
    arrays_.infos = rig.infos;
    Check(rig.ResetAll(0));
  }

  // Steps with the rig's actions, as a client's exchange does.
  void Exchange() {
    Step();
    ++frame_seq_;
  }
  // Makes the requested single steps, as a paused engine does.
  void Idle() {
    const uint32_t steps = std::exchange(single_steps_, 0);
    for (uint32_t i = 0; i < steps; ++i) Step();
    if (done_) std::exchange(done_, nullptr)(steps);
  }

  bool busy() const override { return false; }
  rpc::SimulationMode mode() const override { return mode_; }
  double realtime_factor() const override { return realtime_factor_; }
  absl::Status SetMode(rpc::SimulationMode mode,
                       double realtime_factor) override {
    if (rig.step_secs() == 0) {
      return MakeError(ErrorCode::kUnsupported, "the steps' length is unknown");
    }
    mode_ = mode;
    realtime_factor_ =
        mode == rpc::SimulationMode::REALTIME ? realtime_factor : 1;
    return absl::OkStatus();
  }
  bool paused() const override { return paused_; }
  void SetCaller(size_t caller) override { caller_ = caller; }
  void CallerLeft(size_t caller) override {
    if (pauser_ == caller) SetPaused(false);
  }
  void SetPaused(bool paused) override {
    paused_ = paused;
    pauser_ = caller_;
    if (done_) {
      single_steps_ = 0;
      std::exchange(done_, nullptr)(0);
    }
  }
  absl::Status SingleStep(
      uint32_t steps,
      std::function<void(absl::StatusOr<uint32_t>)> done) override {
    if (!paused_ || done_) {
      return MakeError(ErrorCode::kInvalidArgument, "not paused, or at it");
    }
    single_steps_ = steps;
    done_ = std::move(done);
    return absl::OkStatus();
  }
  void Reset(std::span<const uint32_t> envs, std::optional<uint64_t> seed,
             std::function<void(absl::Status)> done) override {
    NoteChange();
    const absl::Status status = rig.Reset(envs, seed);
    for (const uint32_t env : envs) (void)rows_.Put(env, arrays_);
    done(status);
  }
  StateRows* state_rows() override { return &rows_; }
  uint64_t frame_seq() const override { return frame_seq_; }
  uint64_t steps() const override { return steps_; }
  uint64_t changes() const override { return changes_; }
  void NoteChange() override { ++changes_; }

  EngineRig rig;

 private:
  static void Check(const absl::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  void Step() {
    Check(rig.Step());
    ++steps_;
    NoteChange();
  }

  StepArrays arrays_;
  StateRows rows_;
  rpc::SimulationMode mode_ = rpc::SimulationMode::FAST;
  double realtime_factor_ = 1;
  bool paused_ = false;
  size_t caller_ = 0;
  size_t pauser_ = 0;
  uint32_t single_steps_ = 0;
  std::function<void(absl::StatusOr<uint32_t>)> done_;
  uint64_t frame_seq_ = 0;
  uint64_t steps_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace tandem

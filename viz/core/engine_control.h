// EngineControl: changes a running engine: its services, its pause, its mode.
//
// Data flow: a user's action -> AttendantSide -> the engine's services.
// Ownership: a front end opens it for the user's first action, since it takes
// one of the engine's attendant slots. Its destructor leaves the slot: the
// engine then ends a pause that this attendant made. Thread-safe.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/attendant_side.h"
#include "transport/rpc_client.h"

namespace tandem {

// Every call blocks, for at most kTimeoutSecs. Errors: those of
// RpcClient::Call, and kEngineFailed with the engine's text if it refused.
class EngineControl {
 public:
  static constexpr double kTimeoutSecs = 10;

  // The modes' names, "realtime", "deterministic", "fast", in the order of the
  // protocol's numbers.
  static std::vector<std::string> ModeNames();

  // Takes a slot. Blocks; does not wait for an engine that is not there.
  // Errors: those of AttachedRegion::Peek and AttendantSide::Attach. `label` is
  // shown to people.
  static absl::StatusOr<EngineControl> Attach(absl::string_view region,
                                              absl::string_view label);
  EngineControl(EngineControl&&) = default;
  EngineControl& operator=(EngineControl&&) = delete;

  // Whether the engine's process lives; false: attach again.
  bool EngineAlive() const { return side_->EngineAlive(); }

  uint32_t num_envs() const { return side_->plan().num_envs; }

  // For streams of its attendant.
  RpcClient& calls() { return *calls_; }

  // `service`: a name of kServiceNames.
  absl::Status SwitchService(absl::string_view service, bool on);
  // The engine's time stops for all its clients until it is resumed, or until
  // this attendant leaves.
  absl::Status SetPaused(bool paused);
  // Steps a paused engine once.
  absl::Status SingleStep();
  // `realtime_factor`: simulated seconds for each second, 0.1 to 10; of the
  // mode "realtime" only. kInvalidArgument: not one of ModeNames, or another
  // factor; kUnsupported: an engine that knows no factor, and runs at 1.
  absl::Status SetMode(absl::string_view mode, double realtime_factor = 1);

  struct Mode {
    std::string mode;  // of ModeNames; "": a number without a name
    bool paused = false;
    double realtime_factor = 1;
  };
  absl::StatusOr<Mode> ReadMode();

 private:
  EngineControl(std::unique_ptr<AttendantSide> side,
                std::unique_ptr<RpcClient> calls)
      : side_(std::move(side)), calls_(std::move(calls)) {}

  std::unique_ptr<AttendantSide> side_;
  std::unique_ptr<RpcClient> calls_;  // ends before its session
};

}  // namespace tandem

// StillEngine: an engine that does nothing, so that counts and times measure
// Tandem alone.
//
// Data flow: none; observations keep their initial values.
//
//   StillEngine engine(/*num_envs=*/64, /*obs_size=*/32, /*act_size=*/8);

#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine_adapter/engine.h"

namespace tandem {

class StillEngine final : public Engine {
 public:
  StillEngine(uint32_t num_envs, uint32_t obs_size, uint32_t act_size)
      : schema_{.task = "still",
                .num_envs = num_envs,
                .obs_size = obs_size,
                .act_size = act_size} {}

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest>, const ResetIo&) override {
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t>, const StepIo&) override {
    return absl::OkStatus();
  }

 private:
  EngineSchema schema_;
};

}  // namespace tandem

// CountingEngine: an engine of one environment whose state is the number of its
// steps, for tests of calls.
//
//   CountingEngine engine;
//   auto host = EngineHost::Create(&engine, {.name = name});

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Counts its steps, and returns the count as a joint's position.
class CountingEngine final : public Engine, public MujocoPort {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest>, const ResetIo&) override {
    ++resets_;
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t>, const StepIo& io) override {
    io.obs[0] = static_cast<float>(++steps_);
    io.rewards[0] = 1;
    return absl::OkStatus();
  }
  void ClearClientState() override { ++cleared_; }
  double step_secs() const override { return 0.001; }
  EnginePorts ports() override { return {.mujoco = this}; }

  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t) const override {
    rpc::JointStateT joints;
    joints.positions = {static_cast<float>(steps_)};
    return joints;
  }
  std::vector<float> Controls(uint32_t) const override { return {0}; }
  void SetControl(uint32_t, uint32_t, float) override {}

  // Used by the stepping thread, until the host has stopped.
  int resets_ = 0;
  int cleared_ = 0;

 private:
  uint32_t steps_ = 0;
  Info info_ = {.nq = 1,
                .nv = 1,
                .joint_names = {"count"},
                .position_names = {"count"},
                .actuators = {{.name = "motor", .low = -1, .high = 1}}};
  EngineSchema schema_ = {
      .task = "Counting", .num_envs = 1, .obs_size = 1, .act_size = 1};
};

}  // namespace tandem

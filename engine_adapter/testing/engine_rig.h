// EngineRig: an engine with its own arrays instead of a region's.
//
// Data flow: a test's actions -> the engine -> arrays that the test reads.
//
//   EngineRig rig(MakeClassicControlEngine("Pendulum-v1", {}).value());
//   ASSERT_TRUE(rig.ResetAll(/*first_seed=*/0).ok());
//   rig.actions = {0.5F};
//   ASSERT_TRUE(rig.Step().ok());

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/task_description.h"

namespace tandem {

class EngineRig {
 public:
  explicit EngineRig(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {
    const size_t envs = schema().num_envs;
    actions.resize(envs * schema().act_size);
    obs.resize(envs * schema().obs_size);
    infos.resize(envs * InfoSize(schema().description));
    rewards.resize(envs);
    terminateds.resize(envs);
    truncateds.resize(envs);
    for (uint32_t i = 0; i < envs; ++i) {
      all_.push_back(i);
      requests_.push_back({.env = i, .seed = {}});
    }
  }

  const EngineSchema& schema() const { return engine_->schema(); }
  EnginePorts ports() { return engine_->ports(); }
  SceneSource* scene() { return engine_->scene(); }
  double step_secs() const { return engine_->step_secs(); }

  // Environment i gets first_seed + i; without it, each stream continues.
  absl::Status ResetAll(std::optional<uint64_t> first_seed = {}) {
    for (ResetRequest& request : requests_) {
      request.seed.reset();
      if (first_seed) request.seed = *first_seed + request.env;
    }
    return engine_->Reset(requests_, {.obs = obs, .infos = infos});
  }
  absl::Status Reset(std::span<const uint32_t> envs,
                     std::optional<uint64_t> first_seed) {
    std::vector<ResetRequest> requests;
    for (const uint32_t env : envs) {
      requests.push_back({.env = env, .seed = {}});
      if (first_seed) requests.back().seed = *first_seed + env;
    }
    return engine_->Reset(requests, {.obs = obs, .infos = infos});
  }
  absl::Status Step() {
    return engine_->Step(all_, {.actions = actions,
                                .obs = obs,
                                .rewards = rewards,
                                .terminateds = terminateds,
                                .truncateds = truncateds,
                                .infos = infos});
  }

  // The column of a row at which an info begins. Throws for an unknown info.
  size_t Column(const std::string& info) const {
    size_t column = 0;
    for (const InfoField& field : schema().description.infos) {
      if (field.name == info) return column;
      column += field.length.value_or(1);
    }
    throw std::out_of_range("expected an info of the task, found " + info);
  }

  std::vector<float> actions;
  std::vector<float> obs;
  std::vector<double> infos;
  std::vector<float> rewards;
  std::vector<uint8_t> terminateds;
  std::vector<uint8_t> truncateds;

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<uint32_t> all_;
  std::vector<ResetRequest> requests_;
};

}  // namespace tandem

// EngineRig: an engine with arrays of its own, as a region would hold them.
//
//   EngineRig rig(MakeMujocoEngine("Ant-v5", {.num_envs = 3}).value());
//   ASSERT_TRUE(rig.ResetAll(/*first_seed=*/0).ok());
//   ASSERT_TRUE(rig.Step().ok());
//   EXPECT_EQ(rig.rewards[0], 1);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENGINE_RIG_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENGINE_RIG_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_description.h"

namespace tandem {

class EngineRig {
 public:
  explicit EngineRig(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {
    const EngineSchema& schema = engine_->schema();
    obs.resize(size_t{schema.num_envs} * schema.obs_size);
    actions.resize(size_t{schema.num_envs} * schema.act_size);
    infos.resize(size_t{schema.num_envs} * InfoSize(schema.description));
    rewards.resize(schema.num_envs);
    terminateds.resize(schema.num_envs);
    truncateds.resize(schema.num_envs);
    for (uint32_t i = 0; i < schema.num_envs; ++i) {
      all_.push_back(i);
      requests_.push_back({.env = i, .seed = {}});
    }
  }

  const EngineSchema& schema() const { return engine_->schema(); }

  // Environment i from seed first_seed + i.
  absl::Status ResetAll(uint64_t first_seed) {
    for (ResetRequest& request : requests_) {
      request.seed = first_seed + request.env;
    }
    return engine_->Reset(requests_, {obs, infos});
  }
  absl::Status ResetUnseeded() {
    for (ResetRequest& request : requests_) request.seed.reset();
    return engine_->Reset(requests_, {obs, infos});
  }
  absl::Status Step() {
    return engine_->Step(all_, {.actions = actions,
                                .obs = obs,
                                .rewards = rewards,
                                .terminateds = terminateds,
                                .truncateds = truncateds,
                                .infos = infos});
  }

  // Where an info's columns begin in a row; the row's length for an unknown
  // one.
  size_t Column(const std::string& info) const {
    size_t column = 0;
    for (const InfoField& field : schema().description.infos) {
      if (field.name == info) break;
      column += field.length.value_or(1);
    }
    return column;
  }

  std::vector<float> obs;
  std::vector<float> actions;
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

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_ENGINE_RIG_H_

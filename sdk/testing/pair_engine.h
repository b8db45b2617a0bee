// PairEngine: an engine with typed fields. It observes its actions.
//
// Data flow: actions, int16[2] -> the observation "/pair"; reward 0.1.
//
//   PairEngine engine(/*num_envs=*/1);
//   auto host = EngineHost::Create(&engine, {.name = "demo"});

#ifndef TANDEM_SDK_TESTING_PAIR_ENGINE_H_
#define TANDEM_SDK_TESTING_PAIR_ENGINE_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "engine_adapter/engine.h"

namespace tandem {

class PairEngine final : public Engine {
 public:
  explicit PairEngine(uint32_t num_envs) { schema_.num_envs = num_envs; }

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest>, const ResetIo&) override {
    return absl::OkStatus();
  }
  // All environments step together.
  absl::Status Step(std::span<const uint32_t>, const StepIo& io) override {
    std::ranges::copy(
        FindField(io.fields, FieldRole::kAction, "")->data,
        FindField(io.fields, FieldRole::kObs, "/pair")->data.begin());
    std::ranges::fill(
        FindField(io.fields, FieldRole::kReward, "")->Values<double>(), 0.1);
    return absl::OkStatus();
  }

 private:
  EngineSchema schema_ = {
      .task = "Pair",
      .num_envs = 1,
      .obs_size = 0,
      .act_size = 0,
      .fields = {
          {.role = FieldRole::kObs,
           .type = FieldType::kInt16,
           .shape = {2},
           .path = "/pair"},
          {.role = FieldRole::kObs,
           .type = FieldType::kFloat16,
           .shape = {1, 1, 1, 1},
           .path = "/deep"},
          {.role = FieldRole::kAction, .type = FieldType::kInt16, .shape = {2}},
          {.role = FieldRole::kReward, .type = FieldType::kFloat64}}};
};

}  // namespace tandem

#endif  // TANDEM_SDK_TESTING_PAIR_ENGINE_H_

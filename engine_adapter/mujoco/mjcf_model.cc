#include "engine_adapter/mujoco/mjcf_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

constexpr int kFrameSkip = 1;
constexpr size_t kLongestName = 63;

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> MjcfModel::Create(
    const MujocoTaskOptions& options) {
  absl::StatusOr<ModelPtr> model = LoadModel(options.model_path);
  if (!model.ok()) return model.status();
  if ((*model)->nu == 0 || (*model)->nv == 0) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected a model with joints and actuators, found ",
                     (*model)->njnt, " joints and ", (*model)->nu,
                     " actuators; add an <actuator> section (",
                     options.model_path, ")"));
  }
  std::string name = std::filesystem::path(options.model_path).stem();
  name.resize(std::min(name.size(), kLongestName));
  return std::unique_ptr<Task>(
      new MjcfModel(std::move(name), *std::move(model), options));
}

MjcfModel::MjcfModel(std::string name, ModelPtr model,
                     const MujocoTaskOptions& options)
    : name_(std::move(name)),
      model_(std::move(model)),
      reset_noise_scale_(options.reset_noise_scale.value_or(0)),
      max_episode_steps_(options.max_episode_steps.value_or(0)) {}

uint32_t MjcfModel::obs_size() const {
  return static_cast<uint32_t>(model_->nq + model_->nv);
}

void MjcfModel::Reset(mjData* data, EnvRandom& random) const {
  if (reset_noise_scale_ == 0) {
    mj_forward(model_.get(), data);  // leaves quaternions exactly as they were
  } else {
    ResetWithNoise(*model_, reset_noise_scale_, data, random);
  }
}

StepOutcome MjcfModel::Step(mjData* data) const {
  Simulate(*model_, kFrameSkip, data);
  return {};
}

void MjcfModel::Observe(const mjData& data, std::span<float> obs) const {
  size_t at = 0;
  for (int i = 0; i < model_->nq; ++i) {
    obs[at++] = static_cast<float>(data.qpos[i]);
  }
  for (int i = 0; i < model_->nv; ++i) {
    obs[at++] = static_cast<float>(data.qvel[i]);
  }
}

}  // namespace tandem

#include "engine_adapter/mujoco/half_cheetah.h"

#include <utility>

#include "engine_adapter/mujoco/mujoco_log.h"

namespace tandem {
namespace {

constexpr int kFrameSkip = 5;
constexpr float kCtrlCostWeight = 0.1F;
constexpr double kResetNoiseScale = 0.1;
constexpr uint32_t kMaxEpisodeSteps = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> HalfCheetah::Create(
    const MujocoTaskOptions& options) {
  absl::StatusOr<std::string> path =
      FindAsset("half_cheetah.xml", options.assets_folder);
  if (!path.ok()) return path.status();
  // Gymnasium's file uses what MuJoCo 4 calls deprecated.
  const MutedMujocoWarnings muted;
  absl::StatusOr<ModelPtr> model = LoadModel(*path);
  if (!model.ok()) return model.status();
  return std::unique_ptr<Task>(new HalfCheetah(*std::move(model), options));
}

HalfCheetah::HalfCheetah(ModelPtr model, const MujocoTaskOptions& options)
    : model_(std::move(model)),
      reset_noise_scale_(options.reset_noise_scale.value_or(kResetNoiseScale)),
      max_episode_steps_(options.max_episode_steps.value_or(kMaxEpisodeSteps)) {
}

uint32_t HalfCheetah::obs_size() const {
  return static_cast<uint32_t>(model_->nq - 1 + model_->nv);
}

void HalfCheetah::Reset(mjData* data, EnvRandom& random) const {
  ResetWithNoise(*model_, reset_noise_scale_, data, random);
}

StepOutcome HalfCheetah::Step(mjData* data) const {
  // In float32, as NumPy does it: the actions came as such.
  float squares = 0;
  for (int i = 0; i < model_->nu; ++i) {
    const auto ctrl = static_cast<float>(data->ctrl[i]);
    squares += ctrl * ctrl;
  }
  const double before = data->qpos[0];
  Simulate(*model_, kFrameSkip, data);
  const double seconds = model_->opt.timestep * kFrameSkip;
  const double forward = (data->qpos[0] - before) / seconds;
  const float cost = kCtrlCostWeight * squares;
  return {.reward = static_cast<float>(forward - static_cast<double>(cost)),
          .terminated = false};
}

void HalfCheetah::Observe(const mjData& data, std::span<float> obs) const {
  size_t at = 0;
  for (int i = 1; i < model_->nq; ++i) {
    obs[at++] = static_cast<float>(data.qpos[i]);
  }
  for (int i = 0; i < model_->nv; ++i) {
    obs[at++] = static_cast<float>(data.qvel[i]);
  }
}

}  // namespace tandem

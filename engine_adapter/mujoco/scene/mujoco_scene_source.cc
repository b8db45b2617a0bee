#include "engine_adapter/mujoco/scene/mujoco_scene_source.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/scene/mujoco_glb.h"

namespace tandem {
namespace {

// A changed model is drawn so much later: of a large height field, the version
// takes a millisecond.
constexpr int64_t kVersionNs = 100'000'000;

}  // namespace

uint64_t MujocoSceneSource::Version(uint32_t env) {
  if (IsShared(env)) {
    if (!shared_version_) shared_version_ = DrawnVersion(*model_);
    return *shared_version_;
  }
  const int64_t now_ns = MonotonicNanos();
  if (own_.env != env || now_ns >= own_.until_ns) {
    own_ = {.env = env,
            .until_ns = now_ns + kVersionNs,
            .version = DrawnVersion(environments_[env]->model())};
  }
  return own_.version;
}

SceneSource::Make MujocoSceneSource::Describe(uint32_t env) {
  if (IsShared(env)) return [model = model_] { return MujocoGlb(*model); };
  absl::StatusOr<ModelPtr> copy = CopyModel(environments_[env]->model());
  if (!copy.ok()) return [status = copy.status()] { return status; };
  return [model = std::shared_ptr<const mjModel>(*std::move(copy))] {
    return MujocoGlb(*model);
  };
}

void MujocoSceneSource::Capture(std::span<const uint32_t> envs,
                                PoseSnapshot* into) {
  for (uint32_t i = 0; i < envs.size(); ++i) {
    const MujocoEnvironment& environment = *environments_[envs[i]];
    MujocoPoses(environment.model(), *environment.data(), into->poses(i));
    SceneRow& row = into->row(i);
    row.sim_time = environment.data()->time;
    row.flags &= ~kSceneUnknownTime;
  }
}

}  // namespace tandem

// SceneSnapshot: what a picture needs of an environment, copied.
//
// Data flow: MujocoEnvironment, marks -> Take (the thread that steps) ->
// state() -> SceneRenderer::Draw (a render thread).
// Ownership: one thread at a time.
//
//   absl::StatusOr<SceneSnapshot> snapshot = SceneSnapshot::Create(model);
//   snapshot->Take(environment, canvas->Marks(env));
//   if (snapshot->status().ok()) renderer->Draw(snapshot->state(), ...);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_SNAPSHOT_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_SNAPSHOT_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/render/debug_mark.h"
#include "engine_adapter/mujoco/render/scene_renderer.h"

namespace tandem {

class SceneSnapshot {
 public:
  // For environments of this model, or of one of their own that was made from
  // it. Errors: MakeData's.
  static absl::StatusOr<SceneSnapshot> Create(
      std::shared_ptr<const mjModel> model);

  // Copies positions as the last step left them (mjv_copyData: 4 us for
  // HalfCheetah), so that the picture is the one that Gymnasium's would be, and
  // what is drawn of a model that is the environment's own. Allocates only for
  // the first of those.
  void Take(const MujocoEnvironment& environment,
            std::shared_ptr<const DebugMarks> marks);

  // Of the last Take: kEngineFailed with MuJoCo's words.
  const absl::Status& status() const { return status_; }
  const mjData& data() const { return *data_; }
  SceneState state();

 private:
  SceneSnapshot(std::shared_ptr<const mjModel> model, DataPtr data)
      : model_(std::move(model)), data_(std::move(data)) {}
  void TakeModel(const mjModel& model);

  std::shared_ptr<const mjModel> model_;
  DataPtr data_;
  ModelPtr own_model_;  // nullptr: never needed
  bool has_own_model_ = false;
  std::shared_ptr<const DebugMarks> marks_;
  absl::Status status_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_SCENE_SNAPSHOT_H_

#include "engine_adapter/mujoco/render/scene_snapshot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "transport/base/error.h"

namespace tandem {

absl::StatusOr<SceneSnapshot> SceneSnapshot::Create(
    std::shared_ptr<const mjModel> model) {
  absl::StatusOr<DataPtr> data = MakeData(*model);
  if (!data.ok()) return data.status();
  return SceneSnapshot(std::move(model), *std::move(data));
}

void SceneSnapshot::Take(const MujocoEnvironment& environment,
                         std::shared_ptr<const DebugMarks> marks) {
  const mjModel& model = environment.model();
  marks_ = std::move(marks);
  has_own_model_ = &model != model_.get();
  if (!status_.ok()) status_ = absl::OkStatus();
  try {
    if (has_own_model_) TakeModel(model);
    if (status_.ok()) mjv_copyData(data_.get(), &model, environment.data());
  } catch (const MujocoError& error) {
    status_ = MakeError(ErrorCode::kEngineFailed,
                        absl::StrCat("frames: ", error.what()));
  }
}

void SceneSnapshot::TakeModel(const mjModel& model) {
  if (own_model_ == nullptr) {
    absl::StatusOr<ModelPtr> copy = CopyModel(model);
    status_.Update(copy.status());
    if (copy.ok()) own_model_ = *std::move(copy);
    return;
  }
  // Leaves out meshes and textures, which are with the renderer, and, what is
  // drawn, terrain.
  mjv_copyModel(own_model_.get(), &model);
  std::copy_n(model.hfield_data, model.nhfielddata, own_model_->hfield_data);
}

SceneState SceneSnapshot::state() {
  SceneState state = {.data = data_.get()};
  if (has_own_model_) state.own_model = own_model_.get();
  if (marks_ != nullptr) state.marks = *marks_;
  return state;
}

}  // namespace tandem

#include "engine_adapter/mujoco/render/task_camera.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

// Equals numpy.median: the mean of the two middle values of an even number.
mjtNum Median(std::vector<mjtNum> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

bool FloatsFreely(const mjModel& model, int body) {
  return body < model.nbody && model.body_jntnum[body] > 0 &&
         model.jnt_type[model.body_jntadr[body]] == mjJNT_FREE;
}

}  // namespace

absl::StatusOr<TaskCamera> TaskCamera::Create(
    std::shared_ptr<const mjModel> model,
    const std::optional<CameraView>& view) {
  TaskCamera camera(std::move(model), view);
  TANDEM_ASSIGN_OR_RETURN(const DataPtr initial, MakeData(*camera.model_));
  try {
    mj_kinematics(camera.model_.get(), initial.get());
  } catch (const MujocoError& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("frames: ", error.what()));
  }
  camera.initial_middle_ = camera.MiddleOf(*initial);
  camera.initial_body_ = camera.BodyAt(*initial);
  return camera;
}

TaskCamera::TaskCamera(std::shared_ptr<const mjModel> model,
                       const std::optional<CameraView>& view)
    : model_(std::move(model)), view_(view) {
  if (view_) {
    follow_body_ = view_->follow_body < model_->nbody ? view_->follow_body : 0;
  } else {
    follow_body_ = FloatsFreely(*model_, 1) ? 1 : 0;
  }
}

mjvCamera TaskCamera::OfModel(int index) {
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  camera.type = mjCAMERA_FIXED;
  camera.fixedcamid = index;
  return camera;
}

mjvCamera TaskCamera::Follow(const mjData& data) const {
  mjvCamera camera = Fixed();
  const Point now = BodyAt(data);
  for (size_t axis : {0, 1}) {
    camera.lookat[axis] += now[axis] - initial_body_[axis];
  }
  return camera;
}

mjvCamera TaskCamera::Gymnasium(const mjData& data,
                                std::optional<Point>* lookat) const {
  if (!view_) return Fixed();
  if (!*lookat) *lookat = view_->lookat.value_or(MiddleOf(data));
  return LookingAt(**lookat);
}

mjvCamera TaskCamera::Fixed() const {
  if (view_) return LookingAt(view_->lookat.value_or(initial_middle_));
  mjvCamera camera;
  mjv_defaultFreeCamera(model_.get(), &camera);
  return camera;
}

// Requires a view.
mjvCamera TaskCamera::LookingAt(const Point& lookat) const {
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  camera.distance = view_->distance.value_or(model_->stat.extent);
  camera.elevation = view_->elevation;
  std::ranges::copy(lookat, camera.lookat);
  return camera;
}

TaskCamera::Point TaskCamera::MiddleOf(const mjData& data) const {
  Point middle;
  for (size_t axis = 0; axis < middle.size(); ++axis) {
    std::vector<mjtNum> values;
    for (mjtSize geom = 0; geom < model_->ngeom; ++geom) {
      values.push_back(data.geom_xpos[3 * geom + static_cast<mjtSize>(axis)]);
    }
    middle[axis] = Median(std::move(values));
  }
  return middle;
}

TaskCamera::Point TaskCamera::BodyAt(const mjData& data) const {
  const mjtNum* const at = data.xpos + mjtSize{3} * follow_body_;
  return {at[0], at[1], at[2]};
}

}  // namespace tandem

#include "engine_adapter/mujoco/render/task_camera.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/model/robot_body.h"

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

// The lengths of a box along an axis: from the lowest to the highest point.
struct Interval {
  mjtNum low = std::numeric_limits<mjtNum>::max();
  mjtNum high = std::numeric_limits<mjtNum>::lowest();

  mjtNum length() const { return std::max(high - low, mjtNum{0}); }
  mjtNum middle() const { return (low + high) / 2; }
};

// Measures the robot's geoms, without planes, along a unit vector.
Interval Measure(const mjModel& model, const mjData& data, int robot,
                 const std::array<mjtNum, 3>& axis) {
  Interval measured;
  for (mjtSize geom = 0; geom < model.ngeom; ++geom) {
    if (model.body_rootid[model.geom_bodyid[geom]] != robot ||
        model.geom_type[geom] == mjGEOM_PLANE) {
      continue;
    }
    // The middle and half the size of a box in the geom's frame.
    const mjtNum* const box = model.geom_aabb + 6 * geom;
    const mjtNum* const turn = data.geom_xmat + 9 * geom;
    std::array<mjtNum, 3> local;
    mju_mulMatTVec3(local.data(), turn, axis.data());
    const mjtNum middle = mju_dot3(data.geom_xpos + 3 * geom, axis.data()) +
                          mju_dot3(box, local.data());
    const mjtNum half = std::abs(local[0]) * box[3] +
                        std::abs(local[1]) * box[4] +
                        std::abs(local[2]) * box[5];
    measured.low = std::min(measured.low, middle - half);
    measured.high = std::max(measured.high, middle + half);
  }
  return measured;
}

}  // namespace

absl::StatusOr<TaskCamera> TaskCamera::Create(
    std::shared_ptr<const mjModel> model,
    const std::optional<CameraView>& view) {
  TaskCamera camera(std::move(model), view);
  TANDEM_ASSIGN_OR_RETURN(const DataPtr initial, MakeData(*camera.model_));
  try {
    ComputeTransmission(*camera.model_, initial.get());
  } catch (const MujocoError& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("frames: ", error.what()));
  }
  if (!camera.view_) camera.follow_body_ = RobotOf(*camera.model_, *initial);
  camera.initial_middle_ = camera.MiddleOf(*initial);
  camera.initial_body_ = camera.BodyAt(*initial);
  if (!camera.view_) camera.LookAtRobot(*initial);
  return camera;
}

TaskCamera::TaskCamera(std::shared_ptr<const mjModel> model,
                       const std::optional<CameraView>& view)
    : model_(std::move(model)), view_(view) {
  if (view_ && view_->follow_body < model_->nbody) {
    follow_body_ = view_->follow_body;
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
  mjvCamera camera = view_ ? Fixed() : on_robot_;
  const Point now = BodyAt(data);
  const size_t axes = view_ ? 2 : 3;
  for (size_t axis = 0; axis < axes; ++axis) {
    camera.lookat[axis] += now[axis] - initial_body_[axis];
  }
  return camera;
}

void TaskCamera::LookAtRobot(const mjData& initial) {
  on_robot_ = Fixed();
  const mjtNum azimuth = on_robot_.azimuth * mjPI / 180;
  const mjtNum elevation = on_robot_.elevation * mjPI / 180;
  const mjtNum sin = std::sin(elevation);
  const mjtNum cos = std::cos(elevation);
  // The image's axes, as mjv_updateCamera has them.
  const Point right = {std::sin(azimuth), -std::cos(azimuth), 0};
  const Point up = {-sin * std::cos(azimuth), -sin * std::sin(azimuth), cos};
  const Point ahead = {cos * std::cos(azimuth), cos * std::sin(azimuth), sin};
  const Interval width = Measure(*model_, initial, follow_body_, right);
  const Interval height = Measure(*model_, initial, follow_body_, up);
  const Interval depth = Measure(*model_, initial, follow_body_, ahead);
  const mjtNum shown = std::max(3 * height.length(), width.length());
  if (shown <= 0) return;
  for (size_t axis = 0; axis < right.size(); ++axis) {
    on_robot_.lookat[axis] = width.middle() * right[axis] +
                             height.middle() * up[axis] +
                             depth.middle() * ahead[axis];
  }
  const mjtNum half_angle = model_->vis.global.fovy * mjPI / 360;
  on_robot_.distance = shown / 2 / std::tan(half_angle);
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

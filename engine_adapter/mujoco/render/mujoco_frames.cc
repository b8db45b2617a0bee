#include "engine_adapter/mujoco/render/mujoco_frames.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

// As NumPy's: the mean of the two in the middle of an even number.
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

MujocoFrames::MujocoFrames(std::shared_ptr<const mjModel> model,
                           std::vector<const mjData*> datas,
                           const std::optional<CameraView>& view)
    : model_(std::move(model)), datas_(std::move(datas)), view_(view) {
  if (view_) {
    follow_body_ = view_->follow_body < model_->nbody ? view_->follow_body : 0;
  } else {
    follow_body_ = FloatsFreely(*model_, 1) ? 1 : 0;
  }
}

MujocoFrames::~MujocoFrames() = default;

absl::Status MujocoFrames::Prepare(const FrameOptions& options) {
  options_ = options;
  for (const uint32_t env : options_.envs) {
    absl::StatusOr<DataPtr> copy = MakeData(*model_);
    if (!copy.ok()) return copy.status();
    places_.push_back({.source = datas_[env],
                       .copy = *std::move(copy),
                       .failure = {},
                       .lookat = {}});
  }
  mjData* const initial = places_.front().copy.get();
  try {
    mj_kinematics(model_.get(), initial);
  } catch (const MujocoError& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("frames: ", error.what()));
  }
  initial_middle_ = MiddleOf(*initial);
  initial_body_ = BodyAt(*initial);
  return absl::OkStatus();
}

void MujocoFrames::Capture(uint32_t place) {
  Place& to = places_[place];
  to.failure.clear();
  try {
    mjv_copyData(to.copy.get(), model_.get(), to.source);
  } catch (const MujocoError& error) {
    to.failure = error.what();
  }
}

absl::Status MujocoFrames::Start() {
  absl::StatusOr<std::unique_ptr<SceneRenderer>> renderer =
      SceneRenderer::Create(
          *model_, {.width = options_.width,
                    .height = options_.height,
                    .effects = options_.effects,
                    .endless_planes = options_.camera == FrameCamera::kFollow});
  if (!renderer.ok()) return renderer.status();
  renderer_ = *std::move(renderer);
  return absl::OkStatus();
}

absl::Status MujocoFrames::Draw(uint32_t place, const FrameTile& tile) {
  Place& from = places_[place];
  if (!from.failure.empty()) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("frames: ", from.failure));
  }
  return renderer_->Draw(from.copy.get(), CameraOf(&from), tile);
}

mjvCamera MujocoFrames::CameraOf(Place* place) const {
  mjvCamera camera;
  const mjData& data = *place->copy;
  if (view_) {
    mjv_defaultCamera(&camera);
    camera.distance = view_->distance.value_or(model_->stat.extent);
    camera.elevation = view_->elevation;
    Point lookat = view_->lookat.value_or(initial_middle_);
    if (options_.camera == FrameCamera::kGymnasium) {
      if (!place->lookat) {
        place->lookat = view_->lookat.value_or(MiddleOf(data));
      }
      lookat = *place->lookat;
    }
    std::ranges::copy(lookat, camera.lookat);
  } else {
    mjv_defaultFreeCamera(model_.get(), &camera);
  }
  if (options_.camera == FrameCamera::kFollow) {
    const Point now = BodyAt(data);
    for (size_t axis : {0, 1}) {
      camera.lookat[axis] += now[axis] - initial_body_[axis];
    }
  }
  return camera;
}

MujocoFrames::Point MujocoFrames::MiddleOf(const mjData& data) const {
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

MujocoFrames::Point MujocoFrames::BodyAt(const mjData& data) const {
  const mjtNum* const at = data.xpos + mjtSize{3} * follow_body_;
  return {at[0], at[1], at[2]};
}

}  // namespace tandem

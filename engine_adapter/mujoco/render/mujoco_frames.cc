#include "engine_adapter/mujoco/render/mujoco_frames.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/part_names.h"

namespace tandem {

absl::Status MujocoFrames::Prepare(const FrameOptions& options) {
  options_ = options;
  for (const std::string& name : options_.model_cameras) {
    model_cameras_.push_back(
        name.empty() ? -1
                     : mj_name2id(model_.get(), mjOBJ_CAMERA, name.c_str()));
    if (!name.empty() && model_cameras_.back() < 0) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat(options_.camera == FrameCamera::kFixed
                           ? "--image_camera: expected "
                           : "--frame_camera: expected follow, gymnasium or ",
                       "one of the model's (",
                       OwnNames(*model_, mjOBJ_CAMERA, model_->ncam),
                       "), found '", name, "'"));
    }
  }
  TANDEM_ASSIGN_OR_RETURN(camera_, TaskCamera::Create(model_, view_));
  places_.reserve(options_.envs.size());
  for (const uint32_t env : options_.envs) {
    TANDEM_ASSIGN_OR_RETURN(auto snapshot, SceneSnapshot::Create(model_));
    places_.push_back(
        {.env = env, .snapshot = std::move(snapshot), .lookat = {}});
  }
  return absl::OkStatus();
}

void MujocoFrames::Capture(uint32_t place) {
  Place& to = places_[place];
  to.snapshot.Take(*environments_[to.env],
                   canvas_ == nullptr ? nullptr : canvas_->Marks(to.env));
}

absl::Status MujocoFrames::Start() {
  TANDEM_ASSIGN_OR_RETURN(
      renderer_,
      SceneRenderer::Create(
          *model_,
          {.width = options_.width,
           .height = options_.height,
           .effects = options_.effects,
           .endless_planes = options_.camera == FrameCamera::kFollow &&
                             std::ranges::count(model_cameras_, -1) > 0,
           .most_marks = canvas_ == nullptr ? 0 : kMostDebugMarks}));
  return absl::OkStatus();
}

absl::Status MujocoFrames::Draw(uint32_t place, const FrameTile& tile) {
  Place& from = places_[place];
  if (!from.snapshot.status().ok()) return from.snapshot.status();
  FrameTile part = tile;
  part.row_bytes = options_.width * kRgbBytes;
  for (const int model_camera : model_cameras_) {
    TANDEM_RETURN_IF_ERROR(renderer_->Draw(
        from.snapshot.state(), CameraOf(model_camera, &from), part));
    part.first += part.row_bytes;
  }
  return absl::OkStatus();
}

mjvCamera MujocoFrames::CameraOf(int model_camera, Place* place) const {
  if (model_camera >= 0) return TaskCamera::OfModel(model_camera);
  switch (options_.camera) {
    case FrameCamera::kFollow:
      return camera_->Follow(place->snapshot.data());
    case FrameCamera::kGymnasium:
      return camera_->Gymnasium(place->snapshot.data(), &place->lookat);
    case FrameCamera::kFixed:
      break;
  }
  return camera_->Fixed();
}

}  // namespace tandem

// MujocoCameras: single images of MuJoCo environments, on request.
//
// Data flow: Draw (stepping thread) -> a snapshot in ImageQueue -> the render
// thread -> SceneRenderer -> an Image -> done.
// Ownership: the engine owns it, beside the environments and the canvas. The
// stepping thread calls it.
//
//   absl::StatusOr<std::unique_ptr<MujocoCameras>> cameras =
//       MujocoCameras::Create(model, environments, view, &canvas);
//   absl::Status status =
//       (*cameras)->Draw({.env = 3, .index = 0}, wanted, done);

#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/image.h"
#include "engine_adapter/image_queue.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/render/scene_renderer.h"
#include "engine_adapter/mujoco/render/task_camera.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Viewports:
//  - "main" follows a robot that moves away; its planes are endless.
//  - "gymnasium" is the view of Gymnasium's render (TaskCamera::Fixed).
// All effects are on: a camera's image equals mujoco.Renderer's. Depth has
// 65535 steps from 0 to the model's far plane. A pixel without an object has
// the far plane's depth.
//
// The first image makes the render thread's OpenGL context. The destructor is
// ImageQueue's.
class MujocoCameras final : public CameraPort {
 public:
  // `environments` and `canvas` must outlive this object. `view` and errors: as
  // TaskCamera::Create.
  static absl::StatusOr<std::unique_ptr<MujocoCameras>> Create(
      std::shared_ptr<const mjModel> model,
      std::vector<const MujocoEnvironment*> environments,
      const std::optional<CameraView>& view, const DebugCanvas* canvas);

  const std::vector<rpc::CameraInfoT>& Cameras() const override {
    return cameras_;
  }
  const std::vector<std::string>& Viewports() const override {
    return viewports_;
  }
  // Takes microseconds. The default size is the model's for the camera; else
  // 640x480. Limits: ImageQueue's.
  absl::Status Draw(const ImageRequest& request,
                    std::weak_ptr<const void> wanted, Done done) override;

 private:
  MujocoCameras(std::shared_ptr<const mjModel> model,
                std::vector<const MujocoEnvironment*> environments,
                TaskCamera task_camera, const DebugCanvas* canvas);
  ImageRequest Sized(ImageRequest request) const;
  absl::StatusOr<std::shared_ptr<SceneSnapshot>> SpareSnapshot();
  absl::StatusOr<Image> ImageOf(const ImageRequest& request,
                                SceneSnapshot* snapshot);
  absl::StatusOr<SceneRenderer*> Renderer(bool endless_planes);
  mjvCamera CameraOf(const ImageRequest& request,
                     const SceneSnapshot& snapshot) const;

  const std::shared_ptr<const mjModel> model_;
  const std::vector<const MujocoEnvironment*> environments_;
  const TaskCamera task_camera_;
  const DebugCanvas* const canvas_;
  std::vector<rpc::CameraInfoT> cameras_;
  std::vector<std::string> viewports_;

  Mutex mutex_;
  std::vector<std::unique_ptr<SceneSnapshot>> spare_ ABSL_GUARDED_BY(mutex_);

  // Used by the render thread only: planes of the model's size, and endless.
  std::unique_ptr<SceneRenderer> renderers_[2];

  ImageQueue queue_;  // last: its jobs use all of the above
};

}  // namespace tandem

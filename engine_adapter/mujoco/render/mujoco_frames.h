// MujocoFrames: the FrameSource of MuJoCo environments.
//
// Data flow: environments, marks -> Capture -> copies -> Draw -> pixels.
// Ownership: the engine owns it, beside the environments that it shows.
//
//   MujocoFrames frames(model, environments, camera, &canvas);
//   frames.Prepare(options);  // then see FrameSource

#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/render/scene_renderer.h"
#include "engine_adapter/mujoco/render/task_camera.h"

namespace tandem {

class MujocoFrames final : public FrameSource {
 public:
  // `environments` and `canvas` must outlive this object; `canvas` may be
  // nullptr: no marks. `view` as in TaskCamera.
  MujocoFrames(std::shared_ptr<const mjModel> model,
               std::vector<const MujocoEnvironment*> environments,
               const std::optional<CameraView>& view, const DebugCanvas* canvas)
      : model_(std::move(model)),
        environments_(std::move(environments)),
        view_(view),
        canvas_(canvas) {}

  // kInvalidArgument for a camera that is not in the model.
  absl::Status Prepare(const FrameOptions& options) override;
  // See SceneSnapshot::Take.
  void Capture(uint32_t place) override;
  absl::Status Start() override;
  absl::Status Draw(uint32_t place, const FrameTile& tile) override;
  void Stop() override { renderer_.reset(); }

 private:
  // A rendered environment.
  struct Place {
    uint32_t env;
    SceneSnapshot snapshot;
    // Gymnasium's camera: its value in the first image.
    std::optional<TaskCamera::Point> lookat;
  };

  mjvCamera CameraOf(int model_camera, Place* place) const;

  std::shared_ptr<const mjModel> model_;
  std::vector<const MujocoEnvironment*> environments_;
  std::optional<CameraView> view_;
  const DebugCanvas* canvas_;
  FrameOptions options_;
  std::optional<TaskCamera> camera_;  // from Prepare on
  std::vector<int> model_cameras_;    // of options_; -1: options_.camera
  // Each element belongs to the stepping thread or the render thread,
  // alternately.
  std::vector<Place> places_;
  std::unique_ptr<SceneRenderer> renderer_;  // the render thread's
};

}  // namespace tandem

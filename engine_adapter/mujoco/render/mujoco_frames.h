// MujocoFrames: the pictures of an engine's MuJoCo environments.
//
// Data flow: environments' mjData -> Capture -> copies -> Draw -> pixels.
// Ownership: the engine's, beside the environments that it shows.
//
//   MujocoFrames frames(model, datas, camera);
//   frames.Prepare(options);  // then see FrameSource

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_FRAMES_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_FRAMES_H_

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/render/camera_view.h"
#include "engine_adapter/mujoco/render/scene_renderer.h"

namespace tandem {

class MujocoFrames final : public FrameSource {
 public:
  // `datas[env]` outlive this. Without a view the camera is where the model's
  // file has it, and follows body 1 if that floats freely.
  MujocoFrames(std::shared_ptr<const mjModel> model,
               std::vector<const mjData*> datas,
               const std::optional<CameraView>& view);
  ~MujocoFrames() override;

  absl::Status Prepare(const FrameOptions& options) override;
  // Copies positions as the last step left them (mjv_copyData: 4 us for
  // HalfCheetah), so that the picture is the one that Gymnasium's would be.
  void Capture(uint32_t place) override;
  absl::Status Start() override;
  absl::Status Draw(uint32_t place, const FrameTile& tile) override;
  void Stop() override { renderer_.reset(); }

 private:
  using Point = std::array<mjtNum, 3>;

  // One environment that is drawn.
  struct Place {
    const mjData* source;
    DataPtr copy;
    std::string failure;          // of the last Capture
    std::optional<Point> lookat;  // Gymnasium's camera: as first drawn
  };

  Point MiddleOf(const mjData& data) const;
  Point BodyAt(const mjData& data) const;
  mjvCamera CameraOf(Place* place) const;

  std::shared_ptr<const mjModel> model_;
  std::vector<const mjData*> datas_;
  std::optional<CameraView> view_;
  int follow_body_ = 0;
  FrameOptions options_;
  Point initial_middle_{};  // in the model's own initial state
  Point initial_body_{};
  // Each is the stepping thread's or the render thread's, in turn.
  std::vector<Place> places_;
  std::unique_ptr<SceneRenderer> renderer_;  // the render thread's
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_FRAMES_H_

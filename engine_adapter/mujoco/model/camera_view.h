// CameraView: where a task's camera is.
//
// Data flow: a task's row of the table -> CameraView -> mjvCamera.
//
//   const TaskType kHopper = {..., .camera = {.distance = 3, .follow_body =
//   2}};

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_CAMERA_VIEW_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_CAMERA_VIEW_H_

#include <array>
#include <optional>

namespace tandem {

// What Gymnasium's default_camera_config says; where it is silent, what its
// renderer then takes.
struct CameraView {
  std::optional<double> distance = {};  // metres; none: the model's extent
  // Metres; none: the median of the geoms' positions when first drawn.
  std::optional<std::array<double, 3>> lookat = {};
  double elevation = -45;  // degrees
  // A camera that follows goes along with this body; 0: it stays.
  int follow_body = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_CAMERA_VIEW_H_

// TaskCamera: the cameras for viewers of a task.
//
// Data flow: CameraView of the task, model, state -> mjvCamera.
// Ownership: a value; const calls from any thread.
//
//   absl::StatusOr<TaskCamera> camera = TaskCamera::Create(model, view);
//   renderer->Draw({.data = data}, camera->Follow(*data), tile);

#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "engine_adapter/mujoco/model/task.h"

namespace tandem {

// Without a view, the camera is the model file's free camera; the following
// camera has its direction, and a distance at which the robot fills a third of
// the image's height. The robot is the kinematic tree that has the most
// actuators.
class TaskCamera {
 public:
  using Point = std::array<mjtNum, 3>;

  // Computes the values that depend on the model's initial state. kEngineFailed
  // with MuJoCo's error text.
  static absl::StatusOr<TaskCamera> Create(
      std::shared_ptr<const mjModel> model,
      const std::optional<CameraView>& view);

  // One of the model's own cameras.
  static mjvCamera OfModel(int index);

  // Follows a robot that moves away. Without a view, also its height.
  mjvCamera Follow(const mjData& data) const;

  // The camera of Gymnasium's render. `lookat` is the point at which it looks;
  // none before the first image.
  mjvCamera Gymnasium(const mjData& data, std::optional<Point>* lookat) const;

  // The same, but independent of the first rendered state: it looks at the
  // middle of the model's initial state.
  mjvCamera Fixed() const;

 private:
  TaskCamera(std::shared_ptr<const mjModel> model,
             const std::optional<CameraView>& view);
  mjvCamera LookingAt(const Point& lookat) const;
  Point MiddleOf(const mjData& data) const;
  Point BodyAt(const mjData& data) const;
  void LookAtRobot(const mjData& initial);

  std::shared_ptr<const mjModel> model_;
  std::optional<CameraView> view_;
  int follow_body_ = 0;
  Point initial_middle_{};  // in the model's own initial state
  Point initial_body_{};
  mjvCamera on_robot_{};  // without a view: Follow's, in the initial state
};

}  // namespace tandem

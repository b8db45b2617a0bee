// MujocoCameras: single images of MuJoCo environments, on request.
//
// Data flow: Draw (stepping thread) -> a snapshot in the queue -> the render
// thread -> SceneRenderer -> an Image -> done.
// Ownership: the engine owns it, beside the environments and the canvas. The
// stepping thread calls it; this class owns the render thread.
//
//   absl::StatusOr<std::unique_ptr<MujocoCameras>> cameras =
//       MujocoCameras::Create(model, environments, view, &canvas);
//   absl::Status status =
//       (*cameras)->Draw({.env = 3, .index = 0}, wanted, done);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_CAMERAS_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_CAMERAS_H_

#include <mujoco/mujoco.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/frames/image.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/render/debug_canvas.h"
#include "engine_adapter/mujoco/render/scene_renderer.h"
#include "engine_adapter/mujoco/render/task_camera.h"
#include "engine_adapter/ports/engine_ports.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Viewports:
//  - "main" follows a robot that moves away; its planes are endless.
//  - "gymnasium" is the view of Gymnasium's render (TaskCamera::Fixed).
// All effects are on: a camera's image equals mujoco.Renderer's. Depth has
// 65535 steps from 0 to the model's far plane. A pixel without an object has
// the far plane's depth.
//
// The first image starts the thread and makes its OpenGL context. The thread
// has the lowest priority, as FrameThread's.
class MujocoCameras final : public CameraPort {
 public:
  // Limits of pending images: waiting, being rendered, or rendered and not sent
  // (see Image::held). A colour pixel counts 3 bytes, a depth pixel 4.
  // kMostAtATime is the maximum number of a client's calls and streams.
  static constexpr size_t kMostAtATime = 128;
  static constexpr size_t kMostBytes = size_t{256} * 1024 * 1024;
  static constexpr uint32_t kMostPixels = 1u << 23;

  // `environments` and `canvas` must outlive this object. `view` and errors: as
  // TaskCamera::Create.
  static absl::StatusOr<std::unique_ptr<MujocoCameras>> Create(
      std::shared_ptr<const mjModel> model,
      std::vector<const MujocoEnvironment*> environments,
      const std::optional<CameraView>& view, const DebugCanvas* canvas);
  // Waiting requests get kEngineFailed. Blocks at most until the current image
  // is rendered.
  ~MujocoCameras() override;

  const std::vector<rpc::CameraInfoT>& Cameras() const override {
    return cameras_;
  }
  const std::vector<std::string>& Viewports() const override {
    return viewports_;
  }
  // Takes microseconds. Removes requests of callers that have left. The default
  // size is the model's for the camera; else 640x480. kRingFull if the
  // unanswered requests would exceed kMostAtATime or kMostBytes.
  absl::Status Draw(const ImageRequest& request,
                    std::weak_ptr<const void> wanted, Done done) override;

 private:
  struct Job {
    ImageRequest request;
    std::weak_ptr<const void> wanted;
    std::unique_ptr<SceneSnapshot> snapshot;
    Done done;
    std::shared_ptr<const void> held;  // counts the image as pending
  };
  // Outlives this object while counted images exist.
  struct UnderWay {
    std::atomic<size_t> images = 0;
    std::atomic<size_t> bytes = 0;
  };

  MujocoCameras(std::shared_ptr<const mjModel> model,
                std::vector<const MujocoEnvironment*> environments,
                TaskCamera task_camera, const DebugCanvas* canvas);
  absl::Status Complete(ImageRequest* request) const;
  absl::StatusOr<std::shared_ptr<const void>> Hold(
      const ImageRequest& request) const;
  absl::StatusOr<std::unique_ptr<SceneSnapshot>> SpareSnapshot();
  void DropUnwanted();
  void Run();
  std::optional<Job> NextJob();
  absl::StatusOr<Image> ImageOf(Job* job);
  absl::StatusOr<SceneRenderer*> Renderer(bool endless_planes);
  mjvCamera CameraOf(const Job& job) const;

  const std::shared_ptr<const mjModel> model_;
  const std::vector<const MujocoEnvironment*> environments_;
  const TaskCamera task_camera_;
  const DebugCanvas* const canvas_;
  std::vector<rpc::CameraInfoT> cameras_;
  std::vector<std::string> viewports_;
  const std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();

  std::mutex mutex_;
  std::condition_variable news_;
  // Guarded by mutex_.
  std::deque<Job> waiting_;
  std::vector<std::unique_ptr<SceneSnapshot>> spare_;
  bool stopping_ = false;

  // Used by the render thread only: planes of the model's size, and endless.
  std::unique_ptr<SceneRenderer> renderers_[2];

  std::thread thread_;  // uses all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RENDER_MUJOCO_CAMERAS_H_

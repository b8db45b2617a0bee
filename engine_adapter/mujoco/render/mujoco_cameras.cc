#include "engine_adapter/mujoco/render/mujoco_cameras.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/mutex.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/image.h"
#include "engine_adapter/mujoco/environment/entity_ids.h"
#include "engine_adapter/mujoco/model/part_names.h"

namespace tandem {
namespace {

constexpr uint32_t kOwnWidth = 640;
constexpr uint32_t kOwnHeight = 480;
constexpr FrameEffects kAllEffects = {
    .shadows = true, .reflections = true, .multisampling = true};

enum Viewport : uint32_t { kMain, kGymnasium };

std::vector<rpc::CameraInfoT> CamerasOf(const mjModel& model) {
  std::vector<rpc::CameraInfoT> cameras;
  for (int camera = 0; camera < model.ncam; ++camera) {
    rpc::CameraInfoT info;
    info.id = EntityId(model, EntityKind::kCamera, camera);
    info.name = OwnName(model, mjOBJ_CAMERA, camera);
    cameras.push_back(std::move(info));
  }
  return cameras;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MujocoCameras>> MujocoCameras::Create(
    std::shared_ptr<const mjModel> model,
    std::vector<const MujocoEnvironment*> environments,
    const std::optional<CameraView>& view, const DebugCanvas* canvas) {
  TANDEM_ASSIGN_OR_RETURN(auto task_camera, TaskCamera::Create(model, view));
  return std::unique_ptr<MujocoCameras>(
      new MujocoCameras(std::move(model), std::move(environments),
                        std::move(task_camera), canvas));
}

MujocoCameras::MujocoCameras(std::shared_ptr<const mjModel> model,
                             std::vector<const MujocoEnvironment*> environments,
                             TaskCamera task_camera, const DebugCanvas* canvas)
    : model_(std::move(model)),
      environments_(std::move(environments)),
      task_camera_(std::move(task_camera)),
      canvas_(canvas),
      cameras_(CamerasOf(*model_)),
      viewports_({"main", "gymnasium"}),
      // They may share one OpenGL context: destroyed in the render thread, one
      // by one.
      queue_([this] {
        for (std::unique_ptr<SceneRenderer>& renderer : renderers_) {
          renderer.reset();
        }
      }) {
  // So that the return of a snapshot allocates nothing.
  spare_.reserve(ImageQueue::kMostAtATime);
}

absl::Status MujocoCameras::Draw(const ImageRequest& request,
                                 std::weak_ptr<const void> wanted, Done done) {
  const ImageRequest sized = Sized(request);
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<const void> held,
                          queue_.Admit(sized));
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<SceneSnapshot> snapshot,
                          SpareSnapshot());
  snapshot->Take(*environments_[request.env], canvas_->Marks(request.env));
  queue_.Add({.held = std::move(held),
              .wanted = std::move(wanted),
              .render =
                  [this, sized, snapshot = std::move(snapshot)] {
                    return ImageOf(sized, snapshot.get());
                  },
              .done = std::move(done)});
  return absl::OkStatus();
}

// Sets the size if the request has none.
ImageRequest MujocoCameras::Sized(ImageRequest request) const {
  uint32_t width = kOwnWidth;
  uint32_t height = kOwnHeight;
  if (!request.of_viewport) {
    const int* const own = model_->cam_resolution + 2 * request.index;
    if (own[0] > 1 && own[1] > 1) {  // 1 x 1: not set
      width = static_cast<uint32_t>(own[0]);
      height = static_cast<uint32_t>(own[1]);
    }
  }
  if (request.width == 0) request.width = width;
  if (request.height == 0) request.height = height;
  return request;
}

// The last owner's thread puts the snapshot back.
absl::StatusOr<std::shared_ptr<SceneSnapshot>> MujocoCameras::SpareSnapshot() {
  std::unique_ptr<SceneSnapshot> snapshot;
  {
    MutexLock lock(&mutex_);
    if (!spare_.empty()) {
      snapshot = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (snapshot == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(auto made, SceneSnapshot::Create(model_));
    snapshot = std::make_unique<SceneSnapshot>(std::move(made));
  }
  return std::shared_ptr<SceneSnapshot>(snapshot.release(),
                                        [this](SceneSnapshot* used) {
                                          MutexLock lock(&mutex_);
                                          spare_.emplace_back(used);
                                        });
}

absl::StatusOr<Image> MujocoCameras::ImageOf(const ImageRequest& request,
                                             SceneSnapshot* snapshot) {
  TANDEM_RETURN_IF_ERROR(snapshot->status());
  TANDEM_ASSIGN_OR_RETURN(
      SceneRenderer* const renderer,
      Renderer(request.of_viewport && request.index == kMain));
  const mjvCamera camera = CameraOf(request, *snapshot);
  if (request.depth) {
    std::vector<float> metres(size_t{request.width} * request.height);
    TANDEM_ASSIGN_OR_RETURN(
        const float farthest,
        renderer->DrawDepth(snapshot->state(), camera, request.width,
                            request.height, metres));
    return EncodeDepth(metres, request.width, request.height, double{farthest});
  }
  return RenderImage(request, [&](const FrameTile& tile) {
    return renderer->Draw(snapshot->state(), camera, tile);
  });
}

absl::StatusOr<SceneRenderer*> MujocoCameras::Renderer(bool endless_planes) {
  std::unique_ptr<SceneRenderer>& renderer = renderers_[endless_planes ? 1 : 0];
  if (renderer != nullptr) return renderer.get();
  const std::unique_ptr<SceneRenderer>& other =
      renderers_[endless_planes ? 0 : 1];
  TANDEM_ASSIGN_OR_RETURN(
      renderer,
      SceneRenderer::Create(*model_,
                            {.width = kOwnWidth,
                             .height = kOwnHeight,
                             .effects = kAllEffects,
                             .endless_planes = endless_planes,
                             .most_marks = kMostDebugMarks},
                            other == nullptr ? nullptr : other->gl()));
  return renderer.get();
}

mjvCamera MujocoCameras::CameraOf(const ImageRequest& request,
                                  const SceneSnapshot& snapshot) const {
  if (!request.of_viewport) {
    return TaskCamera::OfModel(static_cast<int>(request.index));
  }
  return request.index == kMain ? task_camera_.Follow(snapshot.data())
                                : task_camera_.Fixed();
}

}  // namespace tandem

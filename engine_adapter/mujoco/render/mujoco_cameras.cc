#include "engine_adapter/mujoco/render/mujoco_cameras.h"

#include <pthread.h>

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine_adapter/base/guarded.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_pace.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/frames/image_encoder.h"
#include "engine_adapter/mujoco/environment/entity_ids.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "transport/base/await.h"
#include "transport/base/blocked_signals.h"
#include "transport/base/error.h"

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
  ASSIGN_OR_RETURN(auto task_camera, TaskCamera::Create(model, view));
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
      viewports_({"main", "gymnasium"}) {}

MujocoCameras::~MujocoCameras() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status MujocoCameras::Draw(const ImageRequest& request,
                                 std::weak_ptr<const void> wanted, Done done) {
  Job job = {.request = request,
             .wanted = std::move(wanted),
             .snapshot = nullptr,
             .done = std::move(done),
             .held = nullptr};
  RETURN_IF_ERROR(Complete(&job.request));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    DropUnwanted();
    ASSIGN_OR_RETURN(job.held, Hold(job.request));
    ASSIGN_OR_RETURN(job.snapshot, SpareSnapshot());
  }
  job.snapshot->Take(*environments_[request.env], canvas_->Marks(request.env));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  news_.notify_one();
  if (!thread_.joinable()) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { Run(); });
  }
  return absl::OkStatus();
}

// Sets the size if the request has none.
absl::Status MujocoCameras::Complete(ImageRequest* request) const {
  uint32_t width = kOwnWidth;
  uint32_t height = kOwnHeight;
  if (!request->of_viewport) {
    const int* const own = model_->cam_resolution + 2 * request->index;
    if (own[0] > 1 && own[1] > 1) {  // 1 x 1: not set
      width = static_cast<uint32_t>(own[0]);
      height = static_cast<uint32_t>(own[1]);
    }
  }
  if (request->width == 0) request->width = width;
  if (request->height == 0) request->height = height;
  if (request->width <= kMaxRenderSide && request->height <= kMaxRenderSide &&
      uint64_t{request->width} * request->height <= kMostPixels) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("width, height: expected sides of at most ", kMaxRenderSide,
                   " and at most ", kMostPixels, " pixels, found ",
                   request->width, "x", request->height));
}

// Counts an image as pending until the result is destroyed.
absl::StatusOr<std::shared_ptr<const void>> MujocoCameras::Hold(
    const ImageRequest& request) const {
  const size_t bytes = size_t{request.width} * request.height *
                       (request.depth ? sizeof(float) : kRgbBytes);
  // relaxed, here and below: the counts publish nothing. Only this thread
  // increases them.
  if (under_way_->images.load(std::memory_order_relaxed) >= kMostAtATime ||
      under_way_->bytes.load(std::memory_order_relaxed) + bytes > kMostBytes) {
    return MakeError(
        ErrorCode::kRingFull,
        absl::StrCat("images: expected at most ", kMostAtATime, " and ",
                     kMostBytes, " bytes at a time, found that ", request.width,
                     "x", request.height,
                     " more would exceed it; ask again when some have come, "
                     "or for smaller ones"));
  }
  under_way_->images.fetch_add(1, std::memory_order_relaxed);  // as above
  under_way_->bytes.fetch_add(bytes, std::memory_order_relaxed);
  return std::shared_ptr<const void>(
      nullptr, [counts = under_way_, bytes](const void*) {
        counts->images.fetch_sub(1, std::memory_order_relaxed);  // as above
        counts->bytes.fetch_sub(bytes, std::memory_order_relaxed);
      });
}

// The caller holds mutex_.
absl::StatusOr<std::unique_ptr<SceneSnapshot>> MujocoCameras::SpareSnapshot() {
  if (!spare_.empty()) {
    std::unique_ptr<SceneSnapshot> snapshot = std::move(spare_.back());
    spare_.pop_back();
    return snapshot;
  }
  ASSIGN_OR_RETURN(auto made, SceneSnapshot::Create(model_));
  return std::make_unique<SceneSnapshot>(std::move(made));
}

// The caller holds mutex_. Removes images whose callers have left.
void MujocoCameras::DropUnwanted() {
  for (Job& job : waiting_) {
    if (job.wanted.expired()) spare_.push_back(std::move(job.snapshot));
  }
  std::erase_if(waiting_,
                [](const Job& job) { return job.snapshot == nullptr; });
}

void MujocoCameras::Run() {
  pthread_setname_np(pthread_self(), "tandem-cameras");
  GoToBackground();
  while (std::optional<Job> job = NextJob()) {
    absl::StatusOr<Image> image = Guarded([&] { return ImageOf(&*job); });
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      spare_.push_back(std::move(job->snapshot));
    }
    if (image.ok()) image->held = std::move(job->held);
    job->done(std::move(image));
  }
  for (Job& job : waiting_) {  // no other thread uses it after stopping_
    job.done(MakeError(ErrorCode::kEngineFailed,
                       "images: the engine stops, and draws no more"));
  }
  // They may share one OpenGL context: destroyed in this thread, one by one.
  for (std::unique_ptr<SceneRenderer>& renderer : renderers_) renderer.reset();
}

std::optional<MujocoCameras::Job> MujocoCameras::NextJob() {
  std::unique_lock<std::mutex> lock(mutex_);
  Await(news_, lock, [this] {
    DropUnwanted();
    return stopping_ || !waiting_.empty();
  });
  if (stopping_) return std::nullopt;
  Job job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

absl::StatusOr<Image> MujocoCameras::ImageOf(Job* job) {
  const ImageRequest& request = job->request;
  if (!job->snapshot->status().ok()) return job->snapshot->status();
  ASSIGN_OR_RETURN(SceneRenderer* const renderer,
                   Renderer(request.of_viewport && request.index == kMain));
  const size_t pixels = size_t{request.width} * request.height;
  if (request.depth) {
    std::vector<float> metres(pixels);
    ASSIGN_OR_RETURN(
        const float farthest,
        renderer->DrawDepth(job->snapshot->state(), CameraOf(*job),
                            request.width, request.height, metres));
    return EncodeDepth(metres, request.width, request.height, double{farthest});
  }
  std::vector<uint8_t> rgb(pixels * kRgbBytes);
  const FrameTile tile = {
      .first = std::as_writable_bytes(std::span(rgb)).data(),
      .stride = request.width * kRgbBytes,
      .row_bytes = request.width * kRgbBytes,
      .rows = request.height};
  RETURN_IF_ERROR(renderer->Draw(job->snapshot->state(), CameraOf(*job), tile));
  return EncodeImage(std::move(rgb), request.width, request.height,
                     request.format);
}

absl::StatusOr<SceneRenderer*> MujocoCameras::Renderer(bool endless_planes) {
  std::unique_ptr<SceneRenderer>& renderer = renderers_[endless_planes ? 1 : 0];
  if (renderer != nullptr) return renderer.get();
  const std::unique_ptr<SceneRenderer>& other =
      renderers_[endless_planes ? 0 : 1];
  ASSIGN_OR_RETURN(renderer, SceneRenderer::Create(
                                 *model_,
                                 {.width = kOwnWidth,
                                  .height = kOwnHeight,
                                  .effects = kAllEffects,
                                  .endless_planes = endless_planes,
                                  .most_marks = kMostDebugMarks},
                                 other == nullptr ? nullptr : other->gl()));
  return renderer.get();
}

mjvCamera MujocoCameras::CameraOf(const Job& job) const {
  const ImageRequest& request = job.request;
  if (!request.of_viewport) {
    return TaskCamera::OfModel(static_cast<int>(request.index));
  }
  return request.index == kMain ? task_camera_.Follow(job.snapshot->data())
                                : task_camera_.Fixed();
}

}  // namespace tandem

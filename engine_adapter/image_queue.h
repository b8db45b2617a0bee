// ImageQueue: the pending requests of a CameraPort, and the thread that renders
// them. RenderImage: draws and encodes one image.
//
// Data flow: CameraPort::Draw in the stepping thread -> Admit, Add -> the
// render thread -> Job::render -> Image -> Job::done.
// Ownership: the CameraPort owns it. The stepping thread calls it; the queue
// owns the render thread.
//
//   TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<const void> held,
//                           queue_.Admit(request));
//   queue_.Add({.held = std::move(held),
//               .wanted = std::move(wanted),
//               .render = [request, state = CopyOf(request.env)] {
//                 return RenderImage(request, [&](const FrameTile& tile) {
//                   return Paint(state, tile);
//                 });
//               },
//               .done = std::move(done)});

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/image.h"

namespace tandem {

// The first image starts the thread. The thread has the lowest priority, as
// FrameThread's.
class ImageQueue {
 public:
  // Limits of pending images: waiting, being rendered, or rendered and not sent
  // (see Image::held). A colour pixel counts 3 bytes, a depth pixel 4.
  // kMostAtATime is the maximum number of a client's calls and streams.
  static constexpr size_t kMostAtATime = 128;
  static constexpr size_t kMostBytes = size_t{256} * 1024 * 1024;
  static constexpr uint32_t kMostPixels = 1u << 23;

  struct Job {
    std::shared_ptr<const void> held;  // of Admit
    std::weak_ptr<const void> wanted;  // of CameraPort::Draw
    // Owns a copy of the state. The render thread calls it at most once, and
    // destroys it before it calls `done`.
    std::function<absl::StatusOr<Image>()> render;
    CameraPort::Done done;
  };

  // The render thread calls `at_end` last, if it was started: there the engine
  // releases its renderer.
  explicit ImageQueue(std::function<void()> at_end = [] {})
      : at_end_(std::move(at_end)) {}
  // Waiting jobs get kEngineFailed. Blocks at most until the current image is
  // rendered.
  ~ImageQueue();
  ImageQueue(const ImageQueue&) = delete;
  ImageQueue& operator=(const ImageQueue&) = delete;

  // Removes the jobs of callers that have left. Then counts an image of the
  // request's size, which is set, as pending until the result is destroyed.
  // Takes microseconds. Errors: CameraPort::Draw's kInvalidArgument and
  // kRingFull.
  absl::StatusOr<std::shared_ptr<const void>> Admit(
      const ImageRequest& request);

  // Renders the job after those before it. Returns without a wait.
  void Add(Job job);

 private:
  // Outlives this object while counted images exist.
  struct Pending {
    std::atomic<size_t> images = 0;
    std::atomic<size_t> bytes = 0;
  };

  void DropUnwanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  std::optional<Job> NextJob();

  const std::function<void()> at_end_;
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();

  Mutex mutex_;
  CondVar news_;
  std::deque<Job> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // uses all of the above
};

// Returns the colour image that `draw` writes into a tile of the request's
// size, in the request's format; or the error of `draw`. Allocates; takes
// milliseconds for a PNG or a JPEG.
absl::StatusOr<Image> RenderImage(
    const ImageRequest& request,
    absl::FunctionRef<absl::Status(const FrameTile& tile)> draw);

}  // namespace tandem

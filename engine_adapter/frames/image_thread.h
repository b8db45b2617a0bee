// ImageThread: renders the observations' images in each step.
//
// Data flow: a step's results -> DrawAll or DrawFlagged in the stepping thread
// -> Capture and Draw -> the region's images; the call returns. Ownership:
// EngineHost owns it; the stepping thread calls it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

// Rendering has its own thread: an OpenGL context belongs to one thread, and
// several threads may poll an engine. The calls block until the images are
// rendered, since they are part of the step. They allocate nothing, unless the
// source allocates or fails.
class ImageThread {
 public:
  // Starts the renderer at once, so a machine that cannot render causes an
  // error here. `images` is uint8[num_envs, height, width, 3], the top row
  // first; `images` and `source` must outlive this object. The render thread
  // calls `stopping` between two images; after it returned true, rendering ends
  // with kInterrupted. Errors: the source's, with the prefix "images: ".
  // kInvalidArgument has no prefix, since its text names the flag.
  static absl::StatusOr<std::unique_ptr<ImageThread>> Create(
      FrameSource* source, const ImageOptions& options, uint32_t num_envs,
      std::span<uint8_t> images, std::function<bool()> stopping = {});
  ~ImageThread();
  ImageThread(const ImageThread&) = delete;
  ImageThread& operator=(const ImageThread&) = delete;

  // Renders every environment's current state. After an error of the source, or
  // kEngineFailed with its exception's text, the images are unspecified.
  absl::Status DrawAll();
  // Renders the current state of these environments into `images`, an array
  // like the constructor's.
  absl::Status DrawInto(std::span<const uint32_t> envs,
                        std::span<uint8_t> images);
  // Renders the environments whose flag is not 0; all of them if the last call
  // failed. `flags` is [num_envs]; the client may overwrite it during the call.
  absl::Status DrawFlagged(std::span<const uint8_t> flags);

 private:
  enum class Turn : uint8_t { kSteps, kDraws, kEnds };

  ImageThread(FrameSource* source, const ImageOptions& options,
              std::span<uint8_t> images, std::function<bool()> stopping);
  absl::Status Draw(std::span<std::byte> target);
  void GiveTurn(Turn turn);
  absl::Status AwaitTurn();
  void Run();
  absl::Status DrawChosen();

  FrameSource* const source_;
  const size_t row_bytes_;  // of one environment
  const size_t rows_;
  const std::span<std::byte> images_;
  const std::function<bool()> stopping_;  // may be empty

  Mutex mutex_;
  CondVar turned_;
  // First it starts the renderer.
  Turn turn_ ABSL_GUARDED_BY(mutex_) = Turn::kDraws;
  // They belong to the thread of turn_.
  std::vector<uint32_t> chosen_;
  std::span<std::byte> target_;  // images_, or those of DrawInto
  absl::Status status_;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace tandem

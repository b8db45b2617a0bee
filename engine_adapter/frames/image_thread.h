// ImageThread: draws the observations' images, step by step.
//
// Data flow: a step's results -> Draw: Capture by the thread that steps ->
// drawn by this class's own -> the region's images; Draw returns.
// Ownership: EngineHost's; the thread that steps calls.
//
//   absl::StatusOr<std::unique_ptr<ImageThread>> thread =
//       ImageThread::Create(source, options, num_envs, arrays.images);
//   absl::Status status = (*thread)->DrawAll();  // before they are published

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_THREAD_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_THREAD_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"

namespace tandem {

// Drawing has a thread of its own since a context of OpenGL belongs to one, and
// an engine may be polled from several. The calls wait for it: the images are
// part of the step. They allocate nothing, unless the source does or fails.
class ImageThread {
 public:
  // Takes what draws into use at once: a machine that cannot draw is found out
  // here. `images` is uint8[num_envs, height, width, 3], the top row first; it
  // and `source` outlive this. `stopping` is asked between two images, by the
  // thread that draws: as soon as it says so, drawing ends with kInterrupted.
  // Errors: the source's, with "images: " unless it is kInvalidArgument, which
  // names its flag.
  static absl::StatusOr<std::unique_ptr<ImageThread>> Create(
      FrameSource* source, const ImageOptions& options, uint32_t num_envs,
      std::span<uint8_t> images, std::function<bool()> stopping = {});
  ~ImageThread();
  ImageThread(const ImageThread&) = delete;
  ImageThread& operator=(const ImageThread&) = delete;

  // Draws every environment as it is now. After an error, the source's or
  // kEngineFailed with what it threw, the images are unspecified.
  absl::Status DrawAll();
  // Draws those whose flag is not 0; all, if the last call failed. `flags` is
  // [num_envs], and may be scribbled over meanwhile.
  absl::Status DrawFlagged(std::span<const uint8_t> flags);

 private:
  enum class Turn : uint8_t { kSteps, kDraws, kEnds };

  ImageThread(FrameSource* source, const ImageOptions& options,
              std::span<uint8_t> images, std::function<bool()> stopping);
  absl::Status Draw();
  void GiveTurn(Turn turn);
  void AwaitTurn(std::unique_lock<std::mutex>* lock);
  void Run();
  absl::Status DrawChosen();
  FrameTile TileOf(uint32_t env) const;

  FrameSource* const source_;
  const size_t row_bytes_;
  const size_t rows_;
  const std::span<std::byte> images_;
  const std::function<bool()> stopping_;  // may be empty

  std::mutex mutex_;
  std::condition_variable turned_;
  // Guarded by mutex_. What is below is used by whose turn it is.
  Turn turn_ = Turn::kDraws;  // first it starts what draws
  std::vector<uint32_t> chosen_;
  absl::Status status_;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_THREAD_H_

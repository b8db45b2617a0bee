// FrameSource: how an engine of any kind shows its environments.
//
// Data flow: environment -> Capture (the thread that steps) -> the source's own
// copy -> Draw (the render thread) -> pixels in the frame ring.
// Ownership: the engine's; FrameThread calls, and sees to it that Capture and
// Draw never run at once.
//
//   class MyFrames final : public FrameSource { ... };
//   FrameSource* MyEngine::frames() { return &frames_; }

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_SOURCE_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "engine_adapter/frames/frame_options.h"

namespace tandem {

// One environment's place in a frame: RGB, the top row first.
struct FrameTile {
  std::byte* first;
  size_t stride;     // bytes from a row to the next
  size_t row_bytes;  // to be written of each
  size_t rows;
};

// Legal order: Prepare once; then Start once; then Capture and Draw in turn;
// Stop once. Nothing here may throw.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // From the thread that makes the host: takes the sizes, makes room for
  // copies. Loads nothing that draws. `options` have passed CheckFrameOptions.
  virtual absl::Status Prepare(const FrameOptions& options) = 0;

  // From the thread that steps, between two exchanges: copies what Draw needs
  // of environment options.envs[place]. Takes microseconds, changes nothing
  // that a step sees, allocates nothing.
  virtual void Capture(uint32_t place) = 0;

  // From the render thread: loads what draws; called when a viewer attaches for
  // the first time. kUnsupported says what the machine lacks.
  virtual absl::Status Start() = 0;

  // From the render thread: writes every pixel of the tile from the copy.
  virtual absl::Status Draw(uint32_t place, const FrameTile& tile) = 0;

  // From the render thread: gives back what Start took, if it was called.
  virtual void Stop() = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_SOURCE_H_

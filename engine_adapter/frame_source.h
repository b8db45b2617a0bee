// FrameSource: renders an engine's environments.
//
// Data flow: environment -> Capture (stepping thread) -> the source's copy ->
// Draw (render thread) -> pixels in the frame ring.
// Ownership: the engine owns it. FrameThread calls it, and never runs Capture
// and Draw at the same time.
//
//   class MyFrames final : public FrameSource { ... };
//   FrameSource* MyEngine::frames() { return &frames_; }

#ifndef TANDEM_ENGINE_ADAPTER_FRAME_SOURCE_H_
#define TANDEM_ENGINE_ADAPTER_FRAME_SOURCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "engine_adapter/frame_options.h"

namespace tandem {

// One environment's place in a frame: RGB, the top row first.
struct FrameTile {
  std::byte* first;
  size_t stride;     // bytes from a row to the next
  size_t row_bytes;  // bytes to write in each row
  size_t rows;
};

// Legal order: Prepare once; then Start once; then Capture and Draw
// alternately; Stop once. No call may throw.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // The thread that makes the host calls this. Stores the sizes, and allocates
  // memory for the copies. Does not load the renderer. `options` have passed
  // CheckFrameOptions.
  virtual absl::Status Prepare(const FrameOptions& options) = 0;

  // The stepping thread calls this between two exchanges. Copies the state of
  // environment options.envs[place] for Draw. Takes microseconds, changes no
  // result of a step, allocates nothing.
  virtual void Capture(uint32_t place) = 0;

  // The render thread calls this when a viewer attaches for the first time.
  // Loads the renderer. kUnsupported: the text names what the machine lacks.
  virtual absl::Status Start() = 0;

  // The render thread calls this. Writes every pixel of the tile from the copy.
  virtual absl::Status Draw(uint32_t place, const FrameTile& tile) = 0;

  // The render thread calls this if it has called Start. Releases the renderer.
  virtual void Stop() = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAME_SOURCE_H_

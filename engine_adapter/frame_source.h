// FrameSource: renders an engine's environments. FrameOptions: the environments
// to render, the size and the rate of frames. ImageOptions: the images that are
// part of each observation.
//
// Data flow: a server's flags -> FrameOptions -> Prepare. An environment ->
// Capture (stepping thread) -> the source's copy -> Draw (render thread) ->
// pixels in the frame ring. ImageOptions -> the region's spec, and the
// FrameOptions of an engine's second FrameSource.
// Ownership: the engine owns its sources. FrameThread calls one, and never runs
// Capture and Draw at the same time.
//
//   class MyFrames final : public FrameSource { ... };
//   FrameSource* MyEngine::frames() { return &frames_; }
//
//   FrameOptions options = {.width = 320, .height = 240, .envs = {0, 1, 2, 3}};
//   absl::Status status = CheckFrameOptions(options, num_envs);

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// In all images the top row is first. A pixel is red, green and blue, a byte
// each.
inline constexpr uint32_t kRgbBytes = 3;  // per pixel

// The position of each environment's camera.
enum class FrameCamera : uint8_t {
  kFollow,     // follows a robot that moves away
  kGymnasium,  // as Gymnasium's render, pixel by pixel
  kFixed,      // as kGymnasium, independent of the first state
};

// Effects that improve an image and take more time.
struct FrameEffects {
  bool shadows = false;
  bool reflections = false;
  bool multisampling = false;  // smooth edges
};

struct FrameOptions {
  uint32_t width = 0;  // of one environment's image, pixels
  uint32_t height = 0;
  std::vector<uint32_t> envs = {};
  double hz = 60;  // maximum while watched; 0: only on request
  // Frames keep the rate on scarce cores, whatever the steps lose.
  bool complete = false;
  uint32_t slots = 8;  // in the frame ring
  FrameEffects effects = {};
  FrameCamera camera = FrameCamera::kFollow;
  // Names of the model's cameras; "": `camera`. Several are side by side in
  // each environment's image, which is so many times as wide.
  std::vector<std::string> model_cameras = {""};
};

struct ImageOptions {
  // Of one camera, in pixels: 1 to kMaxRenderSide.
  uint32_t width = 0;
  uint32_t height = 0;
  // As FrameOptions::model_cameras; "": FrameCamera::kFixed.
  std::vector<std::string> cameras = {""};
  FrameEffects effects = {
      .shadows = true, .reflections = true, .multisampling = true};
};

// kInvalidArgument unless both sides are 1 to kMaxRenderSide.
absl::Status CheckImageSize(absl::string_view flag, uint32_t width,
                            uint32_t height);

// kInvalidArgument for an invalid size, number or environment, or for a frame
// that is too large for a ring.
absl::Status CheckFrameOptions(const FrameOptions& options, uint32_t num_envs);

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

// FrameOptions: which environments are drawn, how large, how often. And
// ImageOptions: the images that are part of each observation.
//
// Data flow: a server's flags -> FrameOptions -> FrameSource and FrameThread;
// ImageOptions -> the region's spec, and the FrameOptions of an engine's second
// FrameSource.
//
//   FrameOptions options = {.width = 320, .height = 240, .envs = {0, 1, 2, 3}};
//   absl::Status status = CheckFrameOptions(options, num_envs);

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_OPTIONS_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// All images: rows from the top; of a pixel red, green and blue, a byte each.
inline constexpr uint32_t kRgbBytes = 3;  // of a pixel

inline constexpr uint32_t kMaxRenderSide = 8192;  // pixels
inline constexpr uint32_t kMaxImages = 1024;      // in a frame
inline constexpr double kMaxFrameHz = 1000;

// Where each environment's camera is.
enum class FrameCamera : uint8_t {
  kFollow,     // goes along with what moves away
  kGymnasium,  // where Gymnasium's render has it, to the pixel
  kFixed,      // the same, but for what depends on the state drawn first
};

// What makes an image prettier, and slower.
struct FrameEffects {
  bool shadows = false;
  bool reflections = false;
  bool multisampling = false;  // smooth edges
};

struct FrameOptions {
  uint32_t width = 0;  // of one environment's image
  uint32_t height = 0;
  std::vector<uint32_t> envs = {};
  double hz = 60;      // at most, while watched; 0: only on demand
  uint32_t slots = 8;  // of the ring
  FrameEffects effects = {};
  FrameCamera camera = FrameCamera::kFollow;
  std::string model_camera = {};  // by its name, in place of `camera`
};

struct ImageOptions {
  uint32_t width = 0;  // pixels, 1 to kMaxRenderSide, as the height
  uint32_t height = 0;
  std::string camera = {};  // of the model; "": FrameCamera::kFixed
  FrameEffects effects = {
      .shadows = true, .reflections = true, .multisampling = true};
};

// "320x240" into width and height. `flag` is for the error's text.
absl::Status ParseFrameSize(absl::string_view flag, absl::string_view text,
                            FrameOptions* options);

// "0,3,5", "all", or "" for the first four.
absl::Status ParseFrameEnvs(absl::string_view text, uint32_t num_envs,
                            FrameOptions* options);

// "shadows,reflections,multisampling", any of them, "all" or "".
absl::Status ParseFrameEffects(absl::string_view flag, absl::string_view text,
                               FrameOptions* options);

// "follow" or "gymnasium".
absl::Status ParseFrameCamera(absl::string_view text, FrameOptions* options);

// kInvalidArgument for sides beyond 1 to kMaxRenderSide.
absl::Status CheckImageSize(absl::string_view flag, uint32_t width,
                            uint32_t height);

// kInvalidArgument for an invalid size, number or environment, or a frame of
// more pixels than a ring can hold.
absl::Status CheckFrameOptions(const FrameOptions& options, uint32_t num_envs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_OPTIONS_H_

// ImageOptions: the pictures that are part of each observation.
//
// Data flow: a server's flags -> ImageOptions -> the region's spec, and the
// FrameOptions of an engine's second FrameSource.
//
//   ImageOptions options = {.width = 64, .height = 64};

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_OPTIONS_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "engine_adapter/frames/frame_options.h"

namespace tandem {

struct ImageOptions {
  uint32_t width = 0;  // pixels, 1 to kMaxPictureSide, as the height
  uint32_t height = 0;
  std::string camera = {};  // one of the model's; "": FrameCamera::kFixed
  FrameEffects effects = {
      .shadows = true, .reflections = true, .multisampling = true};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_OPTIONS_H_

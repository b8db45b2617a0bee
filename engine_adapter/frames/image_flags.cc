#include "engine_adapter/frames/image_flags.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/frames/frame_options.h"
#include "transport/base/error.h"

ABSL_FLAG(std::string, images, "",
          "WIDTHxHEIGHT such as 64x64: each step also draws every environment, "
          "for the client's observations; empty: never");
ABSL_FLAG(std::string, image_camera, "",
          "name of a camera of the model; empty: where Gymnasium's render has "
          "it");
ABSL_FLAG(std::string, image_effects, "all",
          "some of shadows, reflections, multisampling, or all; empty: none. "
          "Without a graphics card they take most of the time");

namespace tandem {

absl::StatusOr<std::optional<ImageOptions>> ImagesFromFlags() {
  const std::string size = absl::GetFlag(FLAGS_images);
  ImageOptions options = {.camera = absl::GetFlag(FLAGS_image_camera)};
  if (size.empty()) {
    if (options.camera.empty()) return std::nullopt;
    return MakeError(ErrorCode::kInvalidArgument,
                     "--image_camera: expected --images WIDTHxHEIGHT with it, "
                     "found none");
  }
  FrameOptions frames;
  absl::Status status = ParseFrameSize("--images", size, &frames);
  status.Update(ParseFrameEffects("--image_effects",
                                  absl::GetFlag(FLAGS_image_effects), &frames));
  status.Update(CheckPictureSize("--images", frames.width, frames.height));
  if (!status.ok()) return status;
  options.width = frames.width;
  options.height = frames.height;
  options.effects = frames.effects;
  return options;
}

}  // namespace tandem

#include "engine_adapter/frames/frame_flags.h"

#include <string>

#include "absl/flags/flag.h"
#include "base/error.h"

ABSL_FLAG(
    std::string, frames, "",
    "WIDTHxHEIGHT such as 320x240: draw environments in this size while a "
    "viewer is attached, or a client asks; empty: never");
ABSL_FLAG(std::string, frame_envs, "",
          "indices of the environments to draw, such as 0,1,2,3, or all; "
          "empty: the first four");
ABSL_FLAG(double, frame_hz, 60,
          "frames per second at most, 0 to 1000; 0: only those that the client "
          "asks for");
ABSL_FLAG(uint32_t, frame_slots, 8,
          "number of frames that the ring holds, 1 to 1024");
ABSL_FLAG(std::string, frame_effects, "",
          "some of shadows, reflections, multisampling, or all: prettier, and "
          "without a graphics card several times slower");
ABSL_FLAG(
    std::string, frame_camera, "follow",
    "follow (moves with the robot), gymnasium (stays, where Gymnasium's render "
    "has it) or the name of a camera of the model");
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

absl::StatusOr<std::optional<FrameOptions>> FramesFromFlags(uint32_t num_envs) {
  const std::string size = absl::GetFlag(FLAGS_frames);
  if (size.empty()) {
    if (absl::GetFlag(FLAGS_frame_envs).empty()) return std::nullopt;
    return MakeError(ErrorCode::kInvalidArgument,
                     "--frame_envs: expected --frames WIDTHxHEIGHT with it, "
                     "found none");
  }
  FrameOptions options = {.hz = absl::GetFlag(FLAGS_frame_hz),
                          .slots = absl::GetFlag(FLAGS_frame_slots)};
  TANDEM_RETURN_IF_ERROR(ParseFrameSize("--frames", size, &options));
  TANDEM_RETURN_IF_ERROR(
      ParseFrameEnvs(absl::GetFlag(FLAGS_frame_envs), num_envs, &options));
  TANDEM_RETURN_IF_ERROR(ParseFrameEffects(
      "--frame_effects", absl::GetFlag(FLAGS_frame_effects), &options));
  TANDEM_RETURN_IF_ERROR(
      ParseFrameCamera(absl::GetFlag(FLAGS_frame_camera), &options));
  TANDEM_RETURN_IF_ERROR(CheckFrameOptions(options, num_envs));
  return options;
}

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
  TANDEM_RETURN_IF_ERROR(ParseFrameSize("--images", size, &frames));
  TANDEM_RETURN_IF_ERROR(ParseFrameEffects(
      "--image_effects", absl::GetFlag(FLAGS_image_effects), &frames));
  TANDEM_RETURN_IF_ERROR(
      CheckImageSize("--images", frames.width, frames.height));
  options.width = frames.width;
  options.height = frames.height;
  options.effects = frames.effects;
  return options;
}

}  // namespace tandem

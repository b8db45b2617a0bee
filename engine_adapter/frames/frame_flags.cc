#include "engine_adapter/frames/frame_flags.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/quoted.h"

ABSL_FLAG(std::string, frames, "",
          "WIDTHxHEIGHT such as 320x240: draw environments in this size while "
          "a viewer is attached, or a client asks; empty: never");
ABSL_FLAG(std::string, frame_envs, "",
          "indices of the environments to draw, such as 0,1,2,3, or all; "
          "empty: the first four");
ABSL_FLAG(double, frame_hz, 60,
          "frames per second at most, 0 to 1000; 0: only those that the client "
          "asks for");
ABSL_FLAG(std::string, frame_priority, "steps",
          "steps: frames become rare while cores are scarce; complete: they "
          "keep --frame_hz, whatever the steps lose");
ABSL_FLAG(uint32_t, frame_slots, 8,
          "number of frames that the ring holds, 1 to 1024");
ABSL_FLAG(std::string, frame_effects, "",
          "some of shadows, reflections, multisampling, or all: prettier, and "
          "without a graphics card several times slower");
ABSL_FLAG(std::string, frame_camera, "follow",
          "follow (moves with the robot), gymnasium (stays, where Gymnasium's "
          "render has it) or the name of a camera of the model");
ABSL_FLAG(double, scene_hz, 60,
          "snapshots per second of the scene that viewers draw themselves, at "
          "most, 0 to 60; 0: none");
ABSL_FLAG(std::string, images, "",
          "WIDTHxHEIGHT such as 64x64: each step also draws every environment, "
          "for the client's observations; empty: never");
ABSL_FLAG(std::string, image_camera, "",
          "name of a camera of the model; empty: where Gymnasium's render has "
          "it; several names with commas: their images are side by side");
ABSL_FLAG(std::string, image_effects, "all",
          "some of shadows, reflections, multisampling, or all; empty: none. "
          "Without a graphics card they take most of the time");

namespace tandem {
namespace {

constexpr uint32_t kShownByDefault = 4;

absl::Status Refuse(absl::string_view flag, absl::string_view expected,
                    absl::string_view text) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected ", expected, ", found ", Quoted(text)));
}

}  // namespace

absl::Status ParseFrameSize(absl::string_view flag, absl::string_view text,
                            FrameOptions* options) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, 'x');
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &options->width) ||
      !absl::SimpleAtoi(sides[1], &options->height)) {
    return Refuse(flag, "WIDTHxHEIGHT such as 320x240", text);
  }
  return absl::OkStatus();
}

absl::Status ParseFrameEnvs(absl::string_view text, uint32_t num_envs,
                            FrameOptions* options) {
  options->envs.clear();
  if (text.empty() || text == "all") {
    options->envs.resize(text.empty() ? std::min(kShownByDefault, num_envs)
                                      : num_envs);
    std::iota(options->envs.begin(), options->envs.end(), 0U);
    return absl::OkStatus();
  }
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    uint32_t env;
    if (!absl::SimpleAtoi(word, &env)) {
      return Refuse("--frame_envs", "indices such as 0,1,2 or all", text);
    }
    options->envs.push_back(env);
  }
  return absl::OkStatus();
}

absl::Status ParseFrameEffects(absl::string_view flag, absl::string_view text,
                               FrameOptions* options) {
  options->effects = {};
  if (text == "all") text = "shadows,reflections,multisampling";
  for (const absl::string_view word :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    if (word == "shadows") {
      options->effects.shadows = true;
    } else if (word == "reflections") {
      options->effects.reflections = true;
    } else if (word == "multisampling") {
      options->effects.multisampling = true;
    } else {
      return Refuse(flag, "some of shadows, reflections, multisampling, or all",
                    word);
    }
  }
  return absl::OkStatus();
}

absl::Status ParseFrameCamera(absl::string_view text, FrameOptions* options) {
  if (text == "follow") {
    options->camera = FrameCamera::kFollow;
  } else if (text == "gymnasium") {
    options->camera = FrameCamera::kGymnasium;
  } else if (!text.empty()) {
    options->model_cameras = {std::string(text)};
  } else {
    return Refuse("--frame_camera",
                  "follow, gymnasium or one of the model's cameras", text);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FrameOptions>> FramesFromFlags(uint32_t num_envs) {
  const std::string size = absl::GetFlag(FLAGS_frames);
  if (size.empty()) {
    if (absl::GetFlag(FLAGS_frame_envs).empty()) return std::nullopt;
    return MakeError(
        ErrorCode::kInvalidArgument,
        "--frame_envs: expected --frames WIDTHxHEIGHT with it, found none");
  }
  const std::string priority = absl::GetFlag(FLAGS_frame_priority);
  if (priority != "steps" && priority != "complete") {
    return Refuse("--frame_priority", "steps or complete", priority);
  }
  FrameOptions options = {.hz = absl::GetFlag(FLAGS_frame_hz),
                          .complete = priority == "complete",
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

double SceneHzFromFlags() { return absl::GetFlag(FLAGS_scene_hz); }

absl::StatusOr<std::optional<ImageOptions>> ImagesFromFlags() {
  const std::string size = absl::GetFlag(FLAGS_images);
  const std::string cameras = absl::GetFlag(FLAGS_image_camera);
  ImageOptions options = {.cameras = absl::StrSplit(cameras, ',')};
  if (size.empty()) {
    if (cameras.empty()) return std::nullopt;
    return MakeError(
        ErrorCode::kInvalidArgument,
        "--image_camera: expected --images WIDTHxHEIGHT with it, found none");
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

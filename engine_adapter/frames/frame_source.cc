#include "engine_adapter/frame_source.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/images/image_grid.h"
#include "base/quoted.h"
#include "transport/frame_geometry.h"

namespace tandem {
namespace {

constexpr uint32_t kShownByDefault = 4;

absl::Status Refuse(absl::string_view flag, absl::string_view expected,
                    absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected ", expected, ", found ", found));
}

}  // namespace

absl::Status ParseFrameSize(absl::string_view flag, absl::string_view text,
                            FrameOptions* options) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, 'x');
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &options->width) ||
      !absl::SimpleAtoi(sides[1], &options->height)) {
    return Refuse(flag, "WIDTHxHEIGHT such as 320x240", Quoted(text));
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
      return Refuse("--frame_envs", "indices such as 0,1,2 or all",
                    Quoted(text));
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
                    Quoted(word));
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
    options->model_camera = std::string(text);
  } else {
    return Refuse("--frame_camera",
                  "follow, gymnasium or one of the model's cameras",
                  Quoted(text));
  }
  return absl::OkStatus();
}

absl::Status CheckImageSize(absl::string_view flag, uint32_t width,
                            uint32_t height) {
  if (width >= 1 && width <= kMaxRenderSide && height >= 1 &&
      height <= kMaxRenderSide) {
    return absl::OkStatus();
  }
  return Refuse(flag, absl::StrCat("sides of 1 to ", kMaxRenderSide),
                absl::StrCat(width, "x", height));
}

absl::Status CheckFrameOptions(const FrameOptions& options, uint32_t num_envs) {
  TANDEM_RETURN_IF_ERROR(
      CheckImageSize("--frames", options.width, options.height));
  if (options.envs.empty() || options.envs.size() > kMaxImages) {
    return Refuse("--frame_envs",
                  absl::StrCat("1 to ", kMaxImages, " environments"),
                  absl::StrCat(options.envs.size()));
  }
  for (const uint32_t env : options.envs) {
    if (env >= num_envs) {
      return Refuse("--frame_envs",
                    absl::StrCat("indices in 0 .. ", num_envs - 1),
                    absl::StrCat(env));
    }
  }
  if (!(options.hz >= 0 && options.hz <= kMaxFrameHz)) {
    return Refuse("--frame_hz", absl::StrCat("0 to ", kMaxFrameHz),
                  absl::StrCat(options.hz));
  }
  if (options.slots < 1 || options.slots > kMaxRenderSlots) {
    return Refuse("--frame_slots", absl::StrCat("1 to ", kMaxRenderSlots),
                  absl::StrCat(options.slots));
  }
  const auto grid = ImageGrid::Of(static_cast<uint32_t>(options.envs.size()));
  const uint64_t width = uint64_t{grid.columns} * options.width;
  const uint64_t height = uint64_t{grid.rows} * options.height;
  if (width > kMaxFrameSide || height > kMaxFrameSide) {
    return Refuse("--frames",
                  absl::StrCat("a frame with sides of at most ", kMaxFrameSide),
                  absl::StrCat(width, "x", height, " for ", options.envs.size(),
                               " environments of ", options.width, "x",
                               options.height, "; show fewer or smaller ones"));
  }
  return absl::OkStatus();
}

}  // namespace tandem

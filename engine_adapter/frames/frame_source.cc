#include "engine_adapter/frame_source.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/images/image_grid.h"
#include "transport/frame_geometry.h"

namespace tandem {
namespace {

absl::Status Unfit(absl::string_view flag, absl::string_view expected,
                   absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(flag, ": expected ", expected, ", found ", found));
}

}  // namespace

absl::Status CheckImageSize(absl::string_view flag, uint32_t width,
                            uint32_t height) {
  if (width >= 1 && width <= kMaxRenderSide && height >= 1 &&
      height <= kMaxRenderSide) {
    return absl::OkStatus();
  }
  return Unfit(flag, absl::StrCat("sides of 1 to ", kMaxRenderSide),
               absl::StrCat(width, "x", height));
}

absl::Status CheckFrameOptions(const FrameOptions& options, uint32_t num_envs) {
  TANDEM_RETURN_IF_ERROR(
      CheckImageSize("--frames", options.width, options.height));
  if (options.envs.empty() || options.envs.size() > kMaxImages) {
    return Unfit("--frame_envs",
                 absl::StrCat("1 to ", kMaxImages, " environments"),
                 absl::StrCat(options.envs.size()));
  }
  for (const uint32_t env : options.envs) {
    if (env >= num_envs) {
      return Unfit("--frame_envs",
                   absl::StrCat("indices in 0 .. ", num_envs - 1),
                   absl::StrCat(env));
    }
  }
  if (!(options.hz >= 0 && options.hz <= kMaxFrameHz)) {
    return Unfit("--frame_hz", absl::StrCat("0 to ", kMaxFrameHz),
                 absl::StrCat(options.hz));
  }
  if (options.slots < 1 || options.slots > kMaxRenderSlots) {
    return Unfit("--frame_slots", absl::StrCat("1 to ", kMaxRenderSlots),
                 absl::StrCat(options.slots));
  }
  const auto grid = ImageGrid::Of(static_cast<uint32_t>(options.envs.size()));
  const uint64_t width = uint64_t{grid.columns} * options.width;
  const uint64_t height = uint64_t{grid.rows} * options.height;
  if (width > kMaxFrameSide || height > kMaxFrameSide) {
    return Unfit("--frames",
                 absl::StrCat("a frame with sides of at most ", kMaxFrameSide),
                 absl::StrCat(width, "x", height, " for ", options.envs.size(),
                              " environments of ", options.width, "x",
                              options.height, "; show fewer or smaller ones"));
  }
  return absl::OkStatus();
}

}  // namespace tandem

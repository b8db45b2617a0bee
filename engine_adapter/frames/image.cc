#include "engine_adapter/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/images/image_files.h"
#include "base/quoted.h"
#include "engine_adapter/frame_source.h"

namespace tandem {
namespace {

constexpr int kJpegQuality = 90;

}  // namespace

absl::StatusOr<ImageFormat> ImageFormatNamed(absl::string_view name,
                                             bool depth) {
  if (depth) {
    if (name.empty() || name == "gray16") return ImageFormat::kGray16;
  } else {
    if (name.empty() || name == "raw") return ImageFormat::kRaw;
    if (name == "png") return ImageFormat::kPng;
    if (name == "jpeg") return ImageFormat::kJpeg;
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("format: expected ",
                   depth ? "gray16 for depth" : "raw, png or jpeg for colours",
                   ", found ", Quoted(name)));
}

absl::string_view NameOf(ImageFormat format) {
  constexpr std::array kNames = {"raw", "png", "jpeg", "gray16"};
  return kNames.at(static_cast<size_t>(format));
}

absl::StatusOr<Image> EncodeImage(std::vector<uint8_t> rgb, uint32_t width,
                                  uint32_t height, ImageFormat format) {
  Image image = {
      .data = {}, .width = width, .height = height, .format = format};
  if (format == ImageFormat::kRaw) {
    image.data = std::move(rgb);
    return image;
  }
  const PixelRows rows = {.pixels = std::as_bytes(std::span(rgb)),
                          .width = width,
                          .height = height,
                          .channels = kRgbBytes};
  TANDEM_ASSIGN_OR_RETURN(
      image.data,
      format == ImageFormat::kPng
          ? EncodePng(rows)
          : EncodeJpeg(rows, {.quality = kJpegQuality, .full_colour = true}));
  return image;
}

Image EncodeDepth(std::span<const float> metres, uint32_t width,
                  uint32_t height, double farthest_metres) {
  constexpr double kMost = std::numeric_limits<uint16_t>::max();
  Image image = {.data = {},
                 .width = width,
                 .height = height,
                 .channels = 1,
                 .format = ImageFormat::kGray16};
  image.depth_scale = static_cast<float>(farthest_metres / kMost);
  image.data.reserve(2 * metres.size());
  for (const float distance : metres) {
    const double steps =
        std::clamp(double{distance} / farthest_metres * kMost, 0.0, kMost);
    const auto value = static_cast<uint16_t>(std::lround(steps));
    image.data.push_back(static_cast<uint8_t>(value & 0xFF));
    image.data.push_back(static_cast<uint8_t>(value >> 8));
  }
  return image;
}

}  // namespace tandem

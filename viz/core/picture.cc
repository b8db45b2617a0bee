#include "viz/core/picture.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/images/image_files.h"

namespace tandem {
namespace {

constexpr uint32_t kRgb = 3;

// Returns RGB: the means of squares with `divisor` pixels a side.
std::vector<std::byte> Shrink(const Frame& frame, uint32_t divisor,
                              uint32_t width, uint32_t height) {
  std::vector<std::byte> small(size_t{width} * height * kRgb);
  const size_t row_bytes = size_t{frame.width} * frame.channels;
  const uint32_t area = divisor * divisor;
  std::vector<uint32_t> sums(size_t{width} * kRgb);
  std::byte* out = small.data();
  for (uint32_t y = 0; y < height; ++y) {
    std::ranges::fill(sums, 0);
    for (uint32_t row = 0; row < divisor; ++row) {
      const std::byte* pixel =
          frame.pixels.data() + (size_t{y} * divisor + row) * row_bytes;
      for (uint32_t x = 0; x < width; ++x) {
        uint32_t* const sum = &sums[size_t{x} * kRgb];
        for (uint32_t i = 0; i < divisor; ++i, pixel += frame.channels) {
          sum[0] += std::to_integer<uint32_t>(pixel[0]);
          sum[1] += std::to_integer<uint32_t>(pixel[1]);
          sum[2] += std::to_integer<uint32_t>(pixel[2]);
        }
      }
    }
    for (const uint32_t sum : sums) {
      *out++ = static_cast<std::byte>((sum + area / 2) / area);
    }
  }
  return small;
}

}  // namespace

uint32_t DivisorFor(uint32_t width, uint32_t height, uint32_t wanted_width) {
  uint32_t divisor =
      wanted_width == 0 ? 1 : std::max<uint32_t>(1, width / wanted_width);
  while (uint64_t{width / divisor} * (height / divisor) > kMaxPicturePixels) {
    ++divisor;
  }
  return divisor;
}

absl::StatusOr<Picture> EncodePicture(const Frame& frame,
                                      const PictureOptions& options) {
  // A narrow frame keeps at least one pixel.
  const uint32_t divisor = std::max<uint32_t>(
      1, std::min({options.divisor, frame.width, frame.height}));
  const auto encode = [&](const PixelRows& rows) {
    return options.lossless ? EncodePng(rows)
                            : EncodeJpeg(rows, {.quality = options.quality,
                                                .full_colour = false});
  };
  Picture picture;
  picture.width = frame.width / divisor;
  picture.height = frame.height / divisor;
  if (divisor == 1) {
    TANDEM_ASSIGN_OR_RETURN(picture.file, encode({.pixels = frame.pixels,
                                                  .width = frame.width,
                                                  .height = frame.height,
                                                  .channels = frame.channels}));
    return picture;
  }
  const std::vector<std::byte> small =
      Shrink(frame, divisor, picture.width, picture.height);
  TANDEM_ASSIGN_OR_RETURN(picture.file, encode({.pixels = small,
                                                .width = picture.width,
                                                .height = picture.height,
                                                .channels = kRgb}));
  return picture;
}

}  // namespace tandem

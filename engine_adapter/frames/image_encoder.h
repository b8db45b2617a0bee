// Images in the formats that callers ask for.
//
// Data flow: a request's format, by name -> ImageFormat; pixels or distances
// -> Image -> rpc::ImageFrameT.
//
//   absl::StatusOr<ImageFormat> format =
//       ImageFormatNamed(request.format, /*depth=*/false);
//   absl::StatusOr<Image> image =
//       EncodeImage(rgb, width, height, *format);

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_ENCODER_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_ENCODER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frames/image.h"

namespace tandem {

// "raw", "png" and "jpeg" for colours, "gray16" for depth; "" is the first that
// fits. kInvalidArgument for any other, naming those there are.
absl::StatusOr<ImageFormat> ImageFormatNamed(absl::string_view name,
                                             bool depth);

// As the protocol has it.
absl::string_view NameOf(ImageFormat format);

// `rgb` is uint8[height, width, 3], the top row first; the format is one of
// colours. JPEG has quality 90 and keeps each pixel's own colour (4:4:4).
// kEngineFailed with the library's words. Takes milliseconds, and memory.
absl::StatusOr<Image> EncodeImage(std::vector<uint8_t> rgb, uint32_t width,
                                  uint32_t height, ImageFormat format);

// `metres` is float32[height, width], the top row first. kGray16 with
// 65535 x depth_scale = farthest_metres: each distance is rounded to the
// nearest step, and what is as far as that, or farther, is 65535.
Image EncodeDepth(std::span<const float> metres, uint32_t width,
                  uint32_t height, double farthest_metres);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_IMAGE_ENCODER_H_

// Image: one image for the caller of an RPC, in the format that it requests.
//
// Data flow: a request's format, by name -> ImageFormat; pixels or distances
// -> EncodeImage, EncodeDepth -> Image -> rpc::ImageFrameT.
//
//   absl::StatusOr<ImageFormat> format =
//       ImageFormatNamed(request.format, /*depth=*/false);
//   absl::StatusOr<Image> image =
//       EncodeImage(rgb, width, height, *format);

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

enum class ImageFormat : uint8_t {
  kRaw,     // colour: uint8[height, width, 3], the top row first
  kPng,     // colour
  kJpeg,    // colour
  kGray16,  // depth: uint16[height, width], little-endian
};

struct Image {
  std::vector<uint8_t> data;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 3;
  ImageFormat format = ImageFormat::kRaw;
  float depth_scale = 0;  // kGray16: metres per unit; otherwise 0
  // The engine counts the image as unanswered while this exists.
  std::shared_ptr<const void> held = {};
};

// Accepts "raw", "png" and "jpeg" for colour, "gray16" for depth; "" is raw or
// gray16. kInvalidArgument for any other name; the text has the valid names.
absl::StatusOr<ImageFormat> ImageFormatNamed(absl::string_view name,
                                             bool depth);

// Returns the format's name in the protocol.
absl::string_view NameOf(ImageFormat format);

// `rgb` is uint8[height, width, 3], the top row first; the format is one for
// colour. JPEG has quality 90 and full colour resolution (4:4:4). kEngineFailed
// with the library's error text. Takes milliseconds; allocates.
absl::StatusOr<Image> EncodeImage(std::vector<uint8_t> rgb, uint32_t width,
                                  uint32_t height, ImageFormat format);

// `metres` is float32[height, width], the top row first. Returns kGray16 with
// 65535 x depth_scale = farthest_metres. Each distance is rounded to the
// nearest unit; greater distances become 65535.
Image EncodeDepth(std::span<const float> metres, uint32_t width,
                  uint32_t height, double farthest_metres);

}  // namespace tandem

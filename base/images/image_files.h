// EncodeJpeg, EncodePng: make files of images.
//
// Data flow: pixels of a frame or of a camera -> libjpeg or libpng -> the bytes
// of a file, for an RPC's answer or for a browser.
//
//   absl::StatusOr<std::vector<uint8_t>> file =
//       EncodeJpeg({.pixels = pixels, .width = 640, .height = 480},
//                  {.quality = 75});

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// The top row first; at least width * height * channels bytes.
struct PixelRows {
  std::span<const std::byte> pixels;
  uint32_t width = 0;  // pixels, 1 to 65,500
  uint32_t height = 0;
  uint32_t channels = 3;  // 3: RGB; 4: RGBA
};

struct JpegOptions {
  int quality = 90;  // 1 to 100
  // True: each pixel keeps its colour (4:4:4), for thin lines. False: four
  // pixels share one (4:2:0), in about two thirds of the bytes.
  bool full_colour = true;
};

// Both take milliseconds, and allocate. Errors: kInvalidArgument, fewer pixels
// than announced; kEngineFailed with the library's text.

// Ignores alpha.
absl::StatusOr<std::vector<uint8_t>> EncodeJpeg(const PixelRows& rows,
                                                const JpegOptions& options);
// Keeps all values, alpha included. Prefers speed to size.
absl::StatusOr<std::vector<uint8_t>> EncodePng(const PixelRows& rows);

}  // namespace tandem

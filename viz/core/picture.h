// EncodePicture: a frame as a file, smaller if that is enough.
//
// Data flow: a frame -> the mean of each square of pixels -> JPEG, 4:2:0, or
// PNG.

#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/frame_reader.h"

namespace tandem {

struct Picture {
  std::vector<uint8_t> file;  // JPEG or PNG
  uint32_t width = 0;         // pixels
  uint32_t height = 0;
};

struct PictureOptions {
  uint32_t divisor = 1;   // of both sides; at least 1
  int quality = 75;       // 1 to 100, of JPEG
  bool lossless = false;  // PNG
};

// The maximum of a picture's pixels: those of two full-HD screens. Larger
// frames, up to 16,384 x 16,384, would take seconds to encode.
inline constexpr uint64_t kMaxPicturePixels = uint64_t{2} * 1920 * 1080;

// Returns the greatest divisor that leaves at least `wanted_width` pixels (0:
// any) in a row, or a greater one if the picture were above kMaxPicturePixels.
uint32_t DivisorFor(uint32_t width, uint32_t height, uint32_t wanted_width);

// Pixels at the right and lower edges that fill no square are omitted. Errors:
// those of image_files.h. Takes milliseconds; allocates.
absl::StatusOr<Picture> EncodePicture(const Frame& frame,
                                      const PictureOptions& options);

}  // namespace tandem

// DecodeJpeg: the pixels of a JPEG file from another machine.
//
// Data flow: the bytes of a file, untrusted -> libjpeg, within limits -> rows
// of RGB.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

struct RgbImage {
  uint32_t width = 0;  // pixels
  uint32_t height = 0;
  std::vector<std::byte> pixels;  // width * height * 3; the top row first
};

// Decodes what EncodeJpeg makes: a baseline file in colour, complete and
// undamaged. Others may need hundreds of times as long for their size. Takes
// milliseconds; allocates the pixels and some rows. kInvalidArgument: the text
// has the reason; files with more pixels are refused before any are decoded.
absl::StatusOr<RgbImage> DecodeJpeg(absl::string_view file,
                                    uint64_t most_pixels);

}  // namespace tandem

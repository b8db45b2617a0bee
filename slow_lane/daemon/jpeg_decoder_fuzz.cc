// Fuzz target of DecodeJpeg. The input is a file. If its first byte is not that
// of a JPEG file, it is a script that makes one by EncodeJpeg, and damages it.
//
// Data flow: bytes -> a file -> DecodeJpeg, twice -> abort if an undamaged file
// is refused, if the two results differ, or if the limit on pixels does not
// hold. AddressSanitizer checks the memory after the file's end.
//
//   bazel run --config=fuzz //slow_lane/daemon:jpeg_decoder_fuzz --
//       -max_total_time=60
//
// jpeg_decoder_fuzz_test runs the same function over
// slow_lane/daemon/jpeg_corpus and over random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/images/image_files.h"
#include "slow_lane/daemon/jpeg_decoder.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

constexpr uint64_t kMostPixels = 1 << 16;
constexpr uint8_t kFirstByte = 0xff;  // of each JPEG file

struct File {
  std::vector<uint8_t> bytes;
  bool undamaged = false;
};

std::vector<uint8_t> Encode(Script* script) {
  const uint32_t width = 1 + script->Byte() % 80;
  const uint32_t height = 1 + script->Byte() % 80;
  std::vector<std::byte> pixels(size_t{width} * height * 3);
  const uint32_t slope = script->Byte();
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::byte>(i * slope / 64);
  }
  const int quality = 1 + script->Byte() % 100;
  const auto file =
      EncodeJpeg({.pixels = pixels, .width = width, .height = height},
                 {.quality = quality, .full_colour = script->Byte() % 2 == 1});
  Require(file.ok(), "an image without a file");
  return *file;
}

File MakeFile(Script* script) {
  File file = {.bytes = Encode(script), .undamaged = script->AtEnd()};
  while (!script->AtEnd() && !file.bytes.empty()) {
    const auto at = file.bytes.begin() +
                    static_cast<ptrdiff_t>(script->Word() % file.bytes.size());
    switch (script->Byte() % 4) {
      case 0:
        *at = script->Byte();
        break;
      case 1:
        file.bytes.erase(at, file.bytes.end());
        break;
      case 2:
        file.bytes.erase(at);
        break;
      default:  // a marker
        file.bytes.insert(at, {kFirstByte, script->Byte()});
    }
  }
  return file;
}

void CheckFile(const File& file) {
  // In a memory block of its own, for AddressSanitizer.
  const auto block = std::make_unique<char[]>(file.bytes.size());
  std::copy(file.bytes.begin(), file.bytes.end(), block.get());
  const absl::string_view view(block.get(), file.bytes.size());

  const absl::StatusOr<RgbImage> image = DecodeJpeg(view, kMostPixels);
  const absl::StatusOr<RgbImage> again = DecodeJpeg(view, kMostPixels);
  Require(image.status() == again.status(), "another result");
  if (!image.ok()) {
    Require(!file.undamaged, "an undamaged file refused");
    Require(image.status().code() == absl::StatusCode::kInvalidArgument,
            "another code");
    Require(!image.status().message().empty(), "no reason");
    return;
  }
  const uint64_t count = uint64_t{image->width} * image->height;
  Require(count > 0 && count <= kMostPixels, "the number of pixels");
  Require(image->pixels.size() == count * 3, "the size of the pixels");
  Require(image->pixels == again->pixels, "other pixels");
  Require(!DecodeJpeg(view, count - 1).ok(), "too many pixels");
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::Script script(data, size);
  tandem::CheckFile(size > 0 && data[0] == tandem::kFirstByte
                        ? tandem::File{.bytes = {data, data + size}}
                        : tandem::MakeFile(&script));
  return 0;
}

#include "slow_lane/daemon/jpeg_decoder.h"

// jpeglib.h uses FILE, and does not include its header.
// clang-format off
#include <jpeglib.h>
// clang-format on
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/images/image_files.h"

namespace tandem {
namespace {

constexpr uint64_t kMany = 1 << 20;

// Red increases to the right, green downwards; blue is constant.
std::vector<std::byte> Slopes(uint32_t width, uint32_t height,
                              uint32_t channels) {
  std::vector<std::byte> pixels;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      pixels.push_back(static_cast<std::byte>(255 * x / width));
      pixels.push_back(static_cast<std::byte>(255 * y / height));
      pixels.push_back(std::byte{90});
      if (channels == 4) pixels.push_back(std::byte{7});
    }
  }
  return pixels;
}

std::string Encode(uint32_t width, uint32_t height, uint32_t channels = 3) {
  const std::vector<std::byte> pixels = Slopes(width, height, channels);
  const auto file = EncodeJpeg({.pixels = pixels,
                                .width = width,
                                .height = height,
                                .channels = channels},
                               {.quality = 90, .full_colour = false});
  EXPECT_TRUE(file.ok()) << file.status();
  return {file->begin(), file->end()};
}

// Files that EncodeJpeg does not make.
enum class Kind { kGrey, kProgressive };
std::string EncodeOther(Kind kind) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long bytes = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&jpeg, &out, &bytes);
  jpeg.image_width = 32;
  jpeg.image_height = 32;
  jpeg.input_components = kind == Kind::kGrey ? 1 : 3;
  jpeg.in_color_space = kind == Kind::kGrey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  if (kind == Kind::kProgressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> line(size_t{32} * 3, 100);
  JSAMPROW row = line.data();
  while (jpeg.next_scanline < jpeg.image_height) {
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(out), bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): libjpeg's malloc
  std::free(out);
  return file;
}

void ExpectRefused(absl::string_view file, absl::string_view reason) {
  const auto image = DecodeJpeg(file, kMany);
  ASSERT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(image.status().message(), reason))
      << image.status();
}

TEST(JpegDecoder, ReturnsTheEncodersPixelsWithinItsError) {
  for (const uint32_t channels : {3U, 4U}) {
    // Neither side is a multiple of a block's.
    const auto image = DecodeJpeg(Encode(101, 67, channels), kMany);
    ASSERT_TRUE(image.ok()) << image.status();
    ASSERT_EQ(image->width, 101U);
    ASSERT_EQ(image->height, 67U);
    const std::vector<std::byte> wanted = Slopes(101, 67, 3);
    ASSERT_EQ(image->pixels.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(static_cast<int>(image->pixels[i]),
                  static_cast<int>(wanted[i]), 12)
          << i;
    }
  }
}

TEST(JpegDecoder, RefusesTooManyPixels) {
  const std::string file = Encode(40, 30);
  EXPECT_TRUE(DecodeJpeg(file, 1200).ok());
  const auto image = DecodeJpeg(file, 1199);
  ASSERT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(image.status().message(), "1199"));
  EXPECT_TRUE(absl::StrContains(image.status().message(), "40x30"));
}

TEST(JpegDecoder, RefusesEachBeginningOfAFile) {
  const std::string file = Encode(48, 48);
  // Without its last marker, of two bytes, a file has all rows.
  for (size_t bytes = 0; bytes + 2 < file.size(); ++bytes) {
    EXPECT_FALSE(DecodeJpeg(file.substr(0, bytes), kMany).ok()) << bytes;
  }
}

TEST(JpegDecoder, SurvivesEachChangedByte) {
  const std::string file = Encode(33, 17);
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto image = DecodeJpeg(changed, kMany);
      if (image.ok()) {
        EXPECT_EQ(image->pixels.size(),
                  size_t{image->width} * image->height * 3);
      }
    }
  }
}

TEST(JpegDecoder, RefusesOtherFiles) {
  ExpectRefused("", "header");
  ExpectRefused("\x89PNG\r\n\x1a\n and more", "header");
  ExpectRefused(EncodeOther(Kind::kGrey), "baseline");
  ExpectRefused(EncodeOther(Kind::kProgressive), "baseline");
}

}  // namespace
}  // namespace tandem

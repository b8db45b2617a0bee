#include "viz/core/picture.h"

// jpeglib.h uses FILE, and does not include its header.
// clang-format off
#include <jpeglib.h>
// clang-format on
#include <gtest/gtest.h>
#include <png.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {
namespace {

using Rgb = std::array<int, 3>;

Frame NewFrame(uint32_t width, uint32_t height, uint32_t channels) {
  Frame frame;
  frame.width = width;
  frame.height = height;
  frame.channels = channels;
  frame.pixels.resize(size_t{width} * height * channels);
  return frame;
}

void SetPixel(Frame* frame, uint32_t x, uint32_t y, const Rgb& colour) {
  for (size_t i = 0; i < 3; ++i) {
    frame->pixels[(size_t{y} * frame->width + x) * frame->channels + i] =
        static_cast<std::byte>(colour[i]);
  }
}

// Decodes a JPEG file; rows of RGB.
std::vector<uint8_t> Decode(const std::vector<uint8_t>& file, uint32_t* width,
                            uint32_t* height) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  *width = jpeg.output_width;
  *height = jpeg.output_height;
  std::vector<uint8_t> pixels(size_t{*width} * *height * 3);
  while (jpeg.output_scanline < *height) {
    JSAMPROW row = &pixels[size_t{jpeg.output_scanline} * *width * 3];
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

TEST(Picture, ASmallerPictureHasTheMeansOfSquares) {
  for (const uint32_t channels : {3U, 4U}) {
    // Columns of 0 and 200: their mean is 100. The last column and row are no
    // part of a square.
    Frame frame = NewFrame(33, 17, channels);
    for (uint32_t y = 0; y < 17; ++y) {
      for (uint32_t x = 0; x < 33; ++x) {
        SetPixel(&frame, x, y, x % 2 == 0 ? Rgb{0, 0, 0} : Rgb{200, 200, 200});
      }
    }
    const auto picture = EncodePicture(frame, {.divisor = 2, .quality = 95});
    ASSERT_TRUE(picture.ok()) << picture.status();
    EXPECT_EQ(picture->width, 16U);
    EXPECT_EQ(picture->height, 8U);
    uint32_t width = 0;
    uint32_t height = 0;
    const std::vector<uint8_t> pixels = Decode(picture->file, &width, &height);
    EXPECT_EQ(width, 16U);
    EXPECT_EQ(height, 8U);
    for (const uint8_t value : pixels) EXPECT_NEAR(value, 100, 3);
  }
}

TEST(Picture, KeepsColoursAndTheirPlaces) {
  for (const uint32_t channels : {3U, 4U}) {
    Frame frame = NewFrame(32, 32, channels);
    for (uint32_t y = 0; y < 32; ++y) {
      for (uint32_t x = 0; x < 32; ++x) {
        SetPixel(&frame, x, y, y < 16 ? Rgb{220, 30, 40} : Rgb{20, 60, 210});
      }
    }
    for (const uint32_t divisor : {1U, 2U}) {
      const auto picture =
          EncodePicture(frame, {.divisor = divisor, .quality = 95});
      ASSERT_TRUE(picture.ok()) << picture.status();
      uint32_t width = 0;
      uint32_t height = 0;
      const std::vector<uint8_t> pixels =
          Decode(picture->file, &width, &height);
      EXPECT_NEAR(pixels[0], 220, 6);
      EXPECT_NEAR(pixels[2], 40, 6);
      const size_t last = pixels.size() - 3;
      EXPECT_NEAR(pixels[last], 20, 6);
      EXPECT_NEAR(pixels[last + 2], 210, 6);
    }
  }
}

TEST(Picture, LowerQualityHasFewerBytes) {
  Frame frame = NewFrame(64, 64, 3);
  for (uint32_t y = 0; y < 64; ++y) {
    for (uint32_t x = 0; x < 64; ++x) {
      const int value = static_cast<int>((x * x + 7 * y * x) % 256);
      SetPixel(&frame, x, y, {value, 255 - value, value / 2});
    }
  }
  const size_t good = EncodePicture(frame, {.quality = 80})->file.size();
  EXPECT_LT(EncodePicture(frame, {.quality = 30})->file.size(), good * 2 / 3);
  EXPECT_LT(EncodePicture(frame, {.divisor = 4, .quality = 80})->file.size(),
            good / 3);
}

TEST(Picture, ALosslessPictureKeepsEachValue) {
  for (const uint32_t channels : {3U, 4U}) {
    Frame frame = NewFrame(13, 7, channels);
    for (size_t i = 0; i < frame.pixels.size(); ++i) {
      frame.pixels[i] = static_cast<std::byte>(37 * i);
    }
    const auto picture = EncodePicture(frame, {.lossless = true});
    ASSERT_TRUE(picture.ok()) << picture.status();
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    ASSERT_NE(png_image_begin_read_from_memory(&image, picture->file.data(),
                                               picture->file.size()),
              0);
    EXPECT_EQ(image.width, 13U);
    EXPECT_EQ(image.height, 7U);
    image.format = channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    std::vector<std::byte> pixels(frame.pixels.size());
    ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr),
              0);
    EXPECT_EQ(pixels, frame.pixels);
  }
}

TEST(Picture, ATinyFrameKeepsAPixel) {
  const auto picture = EncodePicture(NewFrame(3, 1, 3), {.divisor = 8});
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->width, 3U);
  EXPECT_EQ(picture->height, 1U);
}

TEST(DivisorFor, LeavesTheWantedWidth) {
  EXPECT_EQ(DivisorFor(640, 480, 0), 1U);
  EXPECT_EQ(DivisorFor(640, 480, 640), 1U);
  EXPECT_EQ(DivisorFor(640, 480, 321), 1U);
  EXPECT_EQ(DivisorFor(640, 480, 320), 2U);
  EXPECT_EQ(DivisorFor(640, 480, 9999), 1U);
}

TEST(DivisorFor, LimitsGiantFrames) {
  const uint32_t divisor = DivisorFor(16'384, 16'384, 16'384);
  const uint64_t side = 16'384 / divisor;
  EXPECT_LE(side * side, kMaxPicturePixels);
  EXPECT_GT(side * side, kMaxPicturePixels / 2);
}

}  // namespace
}  // namespace tandem

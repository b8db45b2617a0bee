#include "engine_adapter/image.h"

// jpeglib.h uses FILE without including its header.
// clang-format off
#include <jpeglib.h>
// clang-format on
#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

// Red increases to the right, green downwards; blue is constant.
std::vector<uint8_t> Slopes(uint32_t width, uint32_t height) {
  std::vector<uint8_t> rgb;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      rgb.push_back(static_cast<uint8_t>(255 * x / width));
      rgb.push_back(static_cast<uint8_t>(255 * y / height));
      rgb.push_back(90);
    }
  }
  return rgb;
}

Image Encoded(ImageFormat format, uint32_t width, uint32_t height) {
  absl::StatusOr<Image> image =
      EncodeImage(Slopes(width, height), width, height, format);
  EXPECT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->width, width);
  EXPECT_EQ(image->height, height);
  EXPECT_EQ(image->channels, 3U);
  EXPECT_EQ(image->format, format);
  EXPECT_EQ(image->depth_scale, 0);
  return *std::move(image);
}

TEST(ImageFormat, NamesFitColoursOrDepth) {
  EXPECT_EQ(ImageFormatNamed("", false).value(), ImageFormat::kRaw);
  EXPECT_EQ(ImageFormatNamed("", true).value(), ImageFormat::kGray16);
  for (const ImageFormat format :
       {ImageFormat::kRaw, ImageFormat::kPng, ImageFormat::kJpeg}) {
    EXPECT_EQ(ImageFormatNamed(NameOf(format), false).value(), format);
    EXPECT_EQ(CodeOf(ImageFormatNamed(NameOf(format), true).status()),
              ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(ImageFormatNamed(NameOf(ImageFormat::kGray16), true).value(),
            ImageFormat::kGray16);
  for (const char* name : {"gray16", "PNG", "webp"}) {
    const absl::Status status = ImageFormatNamed(name, false).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), name)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "jpeg")) << status;
  }
}

TEST(ImageEncoder, RawIsThePixels) {
  EXPECT_EQ(Encoded(ImageFormat::kRaw, 5, 3).data, Slopes(5, 3));
}

TEST(ImageEncoder, PngHasThePixelsThemselves) {
  for (const uint32_t width : {1U, 7U, 320U}) {
    const Image encoded = Encoded(ImageFormat::kPng, width, 5);
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    ASSERT_NE(png_image_begin_read_from_memory(&image, encoded.data.data(),
                                               encoded.data.size()),
              0);
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.height, 5U);
    image.format = PNG_FORMAT_RGB;
    std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
    ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr),
              0);
    EXPECT_EQ(pixels, Slopes(width, 5));
  }
}

TEST(ImageEncoder, JpegHasNearlyThePixels) {
  for (const uint32_t width : {1U, 7U, 320U}) {
    const Image image = Encoded(ImageFormat::kJpeg, width, 24);
    jpeg_decompress_struct jpeg;
    jpeg_error_mgr errors;  // the default handler ends the process
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, image.data.data(), image.data.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg_start_decompress(&jpeg);
    ASSERT_EQ(jpeg.output_width, width);
    ASSERT_EQ(jpeg.output_height, 24U);
    ASSERT_EQ(jpeg.output_components, 3);
    const std::vector<uint8_t> expected = Slopes(width, 24);
    std::vector<uint8_t> row(size_t{3} * width);
    while (jpeg.output_scanline < jpeg.output_height) {
      const size_t at = jpeg.output_scanline * row.size();
      JSAMPROW rows = row.data();
      jpeg_read_scanlines(&jpeg, &rows, 1);
      for (size_t i = 0; i < row.size(); ++i) {
        ASSERT_NEAR(row[i], expected[at + i], 6) << "byte " << at + i;
      }
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
  }
}

TEST(ImageEncoder, ASizeThatJpegCannotHoldIsAnError) {
  const absl::StatusOr<Image> image =
      EncodeImage(Slopes(70'000, 1), 70'000, 1, ImageFormat::kJpeg);
  EXPECT_EQ(CodeOf(image.status()), ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(image.status().message(), "libjpeg"))
      << image.status();
}

TEST(ImageEncoder, DepthIsInEqualStepsUpToTheFarthest) {
  const std::vector<float> metres = {0, 1.25F, 65.535F, 131.07F, 500, 0.0014F};
  const Image image = EncodeDepth(metres, 3, 2, 131.07);
  EXPECT_EQ(image.width, 3U);
  EXPECT_EQ(image.height, 2U);
  EXPECT_EQ(image.channels, 1U);
  EXPECT_FLOAT_EQ(image.depth_scale, 0.002F);
  ASSERT_EQ(image.data.size(), 12U);
  std::vector<uint32_t> values;
  for (size_t at = 0; at < image.data.size(); at += 2) {
    values.push_back(image.data[at] + 256U * image.data[at + 1]);
  }
  EXPECT_EQ(values, (std::vector<uint32_t>{0, 625, 32'768, 65'535, 65'535, 1}));
}

}  // namespace
}  // namespace tandem

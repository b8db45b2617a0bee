#include "base/images/image_files.h"

// jpeglib.h uses FILE, and does not include its header.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

absl::Status Failed(absl::string_view library, absl::string_view text) {
  return MakeError(ErrorCode::kEngineFailed,
                   absl::StrCat("image: expected ", library,
                                " to encode it, found: ", text));
}

absl::Status Check(const PixelRows& rows) {
  const uint64_t wanted = uint64_t{rows.width} * rows.height * rows.channels;
  if ((rows.channels == 3 || rows.channels == 4) && wanted > 0 &&
      rows.pixels.size() >= wanted) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("image: expected width x height x 3 or 4 bytes, found ",
                   rows.width, "x", rows.height, "x", rows.channels, " and ",
                   rows.pixels.size(), " bytes"));
}

// libjpeg reports errors by longjmp, which leaves only this struct's frame.
struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf leave;
  std::array<char, JMSG_LENGTH_MAX> text;

  static void Leave(j_common_ptr info) {
    auto* const failure = reinterpret_cast<JpegFailure*>(info->err);
    info->err->format_message(info, failure->text.data());
    std::longjmp(failure->leave, 1);
  }
};

// Values that must survive the longjmp are in the caller's frame; no object
// here has a destructor.
bool WriteJpeg(const PixelRows& rows, const JpegOptions& options,
               unsigned char** out, unsigned long* out_bytes,
               JpegFailure* failure) {
  jpeg_compress_struct jpeg;
  jpeg.err = jpeg_std_error(&failure->manager);
  failure->manager.error_exit = JpegFailure::Leave;
  if (setjmp(failure->leave) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, out, out_bytes);
  jpeg.image_width = rows.width;
  jpeg.image_height = rows.height;
  jpeg.input_components = static_cast<int>(rows.channels);
  jpeg.in_color_space = rows.channels == 4 ? JCS_EXT_RGBX : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.full_colour) {
    // The default, 4:2:0, would remove the colour of thin lines.
    jpeg.comp_info[0].h_samp_factor = 1;
    jpeg.comp_info[0].v_samp_factor = 1;
  }
  jpeg_start_compress(&jpeg, TRUE);
  const size_t row_bytes = size_t{rows.width} * rows.channels;
  while (jpeg.next_scanline < rows.height) {
    // libjpeg only reads the rows, although its type is not const.
    const auto* const start =
        reinterpret_cast<const JSAMPLE*>(rows.pixels.data());
    auto* row = const_cast<JSAMPROW>(start + jpeg.next_scanline * row_bytes);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodeJpeg(const PixelRows& rows,
                                                const JpegOptions& options) {
  TANDEM_RETURN_IF_ERROR(Check(rows));
  unsigned char* out = nullptr;
  unsigned long out_bytes = 0;  // NOLINT(google-runtime-int): libjpeg's type
  JpegFailure failure = {};
  const bool written = WriteJpeg(rows, options, &out, &out_bytes, &failure);
  std::vector<uint8_t> data;
  if (written) data.assign(out, out + out_bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): libjpeg's malloc
  std::free(out);
  if (!written) return Failed("libjpeg", failure.text.data());
  return data;
}

absl::StatusOr<std::vector<uint8_t>> EncodePng(const PixelRows& rows) {
  TANDEM_RETURN_IF_ERROR(Check(rows));
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = rows.width;
  image.height = rows.height;
  image.format = rows.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  // A higher level gains little, and streams need speed.
  image.flags = PNG_IMAGE_FLAG_FAST;
  const auto row = static_cast<png_int_32>(rows.width * rows.channels);
  // libpng's own bound, so that it encodes once.
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<uint8_t> data(bytes);
  if (png_image_write_to_memory(&image, data.data(), &bytes, 0,
                                rows.pixels.data(), row, nullptr) == 0) {
    return Failed("libpng", image.message);
  }
  data.resize(bytes);
  return data;
}

}  // namespace tandem

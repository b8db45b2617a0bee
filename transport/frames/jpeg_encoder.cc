#include "transport/frames/jpeg_encoder.h"

// jpeglib.h uses FILE, and does not include its header.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <array>
#include <csetjmp>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

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
bool WriteJpeg(const JpegInput& input, const JpegOptions& options,
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
  jpeg.image_width = input.width;
  jpeg.image_height = input.height;
  jpeg.input_components = static_cast<int>(input.channels);
  jpeg.in_color_space = input.channels == 4 ? JCS_EXT_RGBX : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.full_colour) {
    // The default, 4:2:0, would remove the colour of thin lines.
    jpeg.comp_info[0].h_samp_factor = 1;
    jpeg.comp_info[0].v_samp_factor = 1;
  }
  jpeg_start_compress(&jpeg, TRUE);
  const size_t row_bytes = size_t{input.width} * input.channels;
  while (jpeg.next_scanline < input.height) {
    // libjpeg only reads the rows, although its type is not const.
    const auto* const start =
        reinterpret_cast<const JSAMPLE*>(input.pixels.data());
    auto* row = const_cast<JSAMPROW>(start + jpeg.next_scanline * row_bytes);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodeJpeg(const JpegInput& input,
                                                const JpegOptions& options) {
  const uint64_t wanted = uint64_t{input.width} * input.height * input.channels;
  if ((input.channels != 3 && input.channels != 4) || wanted == 0 ||
      input.pixels.size() < wanted) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("image: expected width x height x 3 or 4 bytes, found ",
                     input.width, "x", input.height, "x", input.channels,
                     " and ", input.pixels.size(), " bytes"));
  }
  unsigned char* out = nullptr;
  unsigned long out_bytes = 0;  // NOLINT(google-runtime-int): libjpeg's type
  JpegFailure failure = {};
  const bool written = WriteJpeg(input, options, &out, &out_bytes, &failure);
  std::vector<uint8_t> data;
  if (written) data.assign(out, out + out_bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): libjpeg's malloc
  std::free(out);
  if (written) return data;
  return MakeError(ErrorCode::kEngineFailed,
                   absl::StrCat("image: expected libjpeg to encode it, found: ",
                                failure.text.data()));
}

}  // namespace tandem

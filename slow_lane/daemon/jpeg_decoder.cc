#include "slow_lane/daemon/jpeg_decoder.h"

// jpeglib.h uses FILE, and does not include its header.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <array>
#include <csetjmp>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr int kRgb = 3;  // bytes of a pixel

// libjpeg reports errors by longjmp, which leaves only functions without
// destructors.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf leave;
  std::array<char, JMSG_LENGTH_MAX> text;

  static void Leave(j_common_ptr info) {
    auto* const failure = reinterpret_cast<Failure*>(info->err);
    info->err->format_message(info, failure->text.data());
    std::longjmp(failure->leave, 1);
  }
  // Level -1 is damage, in whose place libjpeg would make pixels of its own.
  static void LeaveIfDamaged(j_common_ptr info, int level) {
    if (level < 0) Leave(info);
  }
};

bool ReadHeader(absl::string_view file, jpeg_decompress_struct* jpeg,
                Failure* failure) {
  if (setjmp(failure->leave) != 0) return false;
  jpeg_create_decompress(jpeg);
  jpeg_mem_src(jpeg, reinterpret_cast<const unsigned char*>(file.data()),
               file.size());
  jpeg_read_header(jpeg, TRUE);
  return true;
}

bool ReadRows(std::byte* pixels, jpeg_decompress_struct* jpeg,
              Failure* failure) {
  if (setjmp(failure->leave) != 0) return false;
  jpeg->out_color_space = JCS_RGB;
  jpeg_start_decompress(jpeg);
  const size_t row_bytes = size_t{jpeg->output_width} * kRgb;
  while (jpeg->output_scanline < jpeg->output_height) {
    auto* row =
        reinterpret_cast<JSAMPROW>(pixels + jpeg->output_scanline * row_bytes);
    jpeg_read_scanlines(jpeg, &row, 1);
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

absl::Status Refuse(absl::string_view expected, absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("JPEG file: expected ", expected, ", found ", found));
}

}  // namespace

absl::StatusOr<RgbImage> DecodeJpeg(absl::string_view file,
                                    uint64_t most_pixels) {
  jpeg_decompress_struct jpeg = {};
  Failure failure = {};
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = Failure::Leave;
  failure.manager.emit_message = Failure::LeaveIfDamaged;
  const auto destroy =
      absl::MakeCleanup([&jpeg] { jpeg_destroy_decompress(&jpeg); });
  if (!ReadHeader(file, &jpeg, &failure)) {
    return Refuse("a complete header", failure.text.data());
  }
  if (uint64_t{jpeg.image_width} * jpeg.image_height > most_pixels) {
    return Refuse(absl::StrCat("at most ", most_pixels, " pixels"),
                  absl::StrCat(jpeg.image_width, "x", jpeg.image_height));
  }
  if (jpeg.num_components != kRgb || jpeg.arith_code != FALSE ||
      jpeg_has_multiple_scans(&jpeg) != FALSE) {
    return Refuse("a baseline file in colour", "another kind");
  }
  RgbImage image = {
      .width = jpeg.image_width, .height = jpeg.image_height, .pixels = {}};
  image.pixels.resize(size_t{image.width} * image.height * kRgb);
  if (!ReadRows(image.pixels.data(), &jpeg, &failure)) {
    return Refuse("undamaged rows", failure.text.data());
  }
  return image;
}

}  // namespace tandem

#include "base/images/image_files.h"

#include "base/error.h"

namespace tandem {
namespace {

absl::Status Unsupported() {
  return MakeError(ErrorCode::kUnsupported,
                   "expected libjpeg and libpng, found that the build for "
                   "Windows has neither; ask for raw pixels, or use Linux");
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodeJpeg(const PixelRows&,
                                                const JpegOptions&) {
  return Unsupported();
}

absl::StatusOr<std::vector<uint8_t>> EncodePng(const PixelRows&) {
  return Unsupported();
}

}  // namespace tandem

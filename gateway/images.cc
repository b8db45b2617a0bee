#include "gateway/images.h"

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/error_codes.h"
#include "transport/rpc_side.h"

namespace tandem::gateway {
namespace {

constexpr uint32_t kDepthBytes = 2;  // of a pixel
constexpr uint32_t kRgb = 3;
constexpr uint32_t kRgba = 4;

void CopyAsRgba(std::span<const std::byte> rgb, std::string* rgba) {
  const size_t pixels = rgb.size() / kRgb;
  rgba->resize(pixels * kRgba);
  const std::byte* from = rgb.data();
  char* to = rgba->data();
  for (size_t i = 0; i < pixels; ++i, from += kRgb, to += kRgba) {
    to[0] = static_cast<char>(from[0]);
    to[1] = static_cast<char>(from[1]);
    to[2] = static_cast<char>(from[2]);
    to[3] = '\xff';
  }
}

}  // namespace

absl::Status TakeImage(RpcMessage* message, const rpc::ImageFrame& from,
                       hazel::rpc::ImageFrame* to) {
  const ImageLease lease = message->TakeImage();
  const std::span<const std::byte> pixels =
      lease ? std::span<const std::byte>(lease.bytes())
            : std::as_bytes(
                  from.data() == nullptr
                      ? std::span<const uint8_t>()
                      : std::span(from.data()->data(), from.data()->size()));
  const bool is_depth = from.channels() == 1;
  const uint64_t count = uint64_t{from.width()} * from.height();
  const uint32_t found_bytes = is_depth ? kDepthBytes : from.channels();
  if ((!is_depth && from.channels() != kRgb && from.channels() != kRgba) ||
      pixels.empty() || pixels.size() != count * found_bytes) {
    return MakeError(
        ErrorCode::kEngineFailed,
        absl::StrCat("expected the engine's image to have ", from.width(),
                     " x ", from.height(), " pixels, found ", pixels.size(),
                     " bytes with ", from.channels(), " channels"));
  }
  const uint64_t bytes = count * (is_depth ? kDepthBytes : kRgba);
  if (bytes > kMostImageBytes) {
    return MakeError(
        ErrorCode::kRingFull,
        absl::StrCat("expected an image of at most ", kMostImageBytes,
                     " bytes, since gRPC's clients refuse larger messages, "
                     "found ",
                     from.width(), " x ", from.height(), " pixels, ", bytes,
                     " bytes; next: a smaller width and height in the "
                     "request"));
  }
  if (from.channels() == kRgb) {
    CopyAsRgba(pixels, to->mutable_data());
  } else {
    to->set_data(pixels.data(), pixels.size());
  }
  if (lease && !lease.IsIntact()) {
    return MakeError(ErrorCode::kPeerGone,
                     "the region's slot of the image has another caller");
  }
  to->set_width(from.width());
  to->set_height(from.height());
  to->set_channels(is_depth ? 1 : kRgba);
  to->set_format(is_depth ? "gray16le" : "raw");
  to->set_timestamp_ms(from.timestamp_ms());
  to->set_frame_number(from.frame_number());
  to->set_depth_scale(from.depth_scale());
  return absl::OkStatus();
}

absl::Status CheckTotalSize(
    const google::protobuf::RepeatedPtrField<hazel::rpc::NamedImageFrame>&
        images) {
  size_t bytes = 0;
  for (const auto& image : images) bytes += image.frame().data().size();
  if (bytes <= kMostImageBytes) return absl::OkStatus();
  const hazel::rpc::NamedImageFrame& last = *images.rbegin();
  return MakeError(
      ErrorCode::kRingFull,
      absl::StrCat("expected images of at most ", kMostImageBytes,
                   " bytes in all, since gRPC's clients refuse larger "
                   "messages, found ",
                   bytes, " bytes with the ", last.frame().width(), " x ",
                   last.frame().height(), " pixels of '", last.name(),
                   "'; next: smaller or fewer images"));
}

}  // namespace tandem::gateway

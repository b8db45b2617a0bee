#include "transport/frame_geometry.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/printable.h"

namespace tandem {
namespace {

absl::Status CheckRange(ErrorCode code, absl::string_view field, uint64_t value,
                        uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return MakeError(code, absl::StrCat("frame ring: expected ", field, " in ",
                                      least, " .. ", most, ", found ", value));
}

absl::Status RingMismatch(absl::string_view field, absl::string_view expected,
                          absl::string_view found) {
  return MakeError(ErrorCode::kLayoutMismatch,
                   absl::StrCat("frame ring: expected ", field, " ", expected,
                                ", found ", found));
}

// Within the limits all products fit 64 bits, and the payload fits 32 bits.
absl::Status CheckLimits(ErrorCode code, const FrameGeometry& geometry) {
  const bool bytes = geometry.kind == FrameKind::kBytes;
  absl::Status status = CheckRange(code, "width", geometry.width, 1,
                                   bytes ? kMaxBytesFrame : kMaxFrameSide);
  status.Update(CheckRange(code, "height", geometry.height, 1,
                           bytes ? 1 : kMaxFrameSide));
  status.Update(bytes ? CheckRange(code, "channels (bytes, no image)",
                                   geometry.channels, 1, 1)
                      : CheckRange(code, "channels (3 RGB, 4 RGBA)",
                                   geometry.channels, 3, 4));
  status.Update(
      CheckRange(code, "capacity", geometry.capacity, 1, kMaxFrameSlots));
  status.Update(CheckRange(code, "metadata room", geometry.metadata_bytes, 0,
                           kMaxMetadataBytes));
  return status;
}

// `channels` are those of a kind.
uint32_t FormatOf(uint32_t channels) {
  return channels == 1 ? kFlanBytes : channels == 3 ? kFlanRgb : kFlanRgba;
}

}  // namespace

FrameMetrics MetricsOf(const FlanHeader& header) {
  // relaxed: numbers for display; no other read depends on them.
  return {
      .last_reward = header.last_reward.load(std::memory_order_relaxed),
      .rolling_return = header.rolling_return.load(std::memory_order_relaxed),
      .step_rate_hz = header.step_rate_hz.load(std::memory_order_relaxed)};
}

FrameGeometry WithAlignedSlots(FrameGeometry geometry) {
  constexpr uint64_t kAlignment = 64;
  const uint64_t slot =
      sizeof(FlanSlot) + geometry.FrameBytes() + geometry.metadata_bytes;
  geometry.metadata_bytes +=
      static_cast<uint32_t>((kAlignment - slot % kAlignment) % kAlignment);
  return geometry;
}

absl::StatusOr<FlanHeader> PlanFrameRing(const FrameGeometry& geometry) {
  TANDEM_RETURN_IF_ERROR(CheckLimits(ErrorCode::kInvalidArgument, geometry));
  FlanHeader header = {};
  std::copy(std::begin(kFlanMagic), std::end(kFlanMagic), header.magic);
  header.version = kFlanVersion;
  header.capacity = geometry.capacity;
  header.payload_size =
      static_cast<uint32_t>(geometry.FrameBytes() + geometry.metadata_bytes);
  header.slot_size =
      header.payload_size + static_cast<uint32_t>(sizeof(FlanSlot));
  header.width = geometry.width;
  header.height = geometry.height;
  header.channels = geometry.channels;
  header.format = FormatOf(geometry.channels);
  return header;
}

uint64_t FrameRingBytes(const FlanHeader& header) {
  return sizeof(FlanHeader) + uint64_t{header.capacity} * header.slot_size;
}

absl::StatusOr<FrameGeometry> CheckFrameRing(const FlanHeader& header,
                                             uint64_t ring_bytes,
                                             FrameKind kind) {
  if (std::memcmp(header.magic, kFlanMagic, sizeof(kFlanMagic)) != 0) {
    // Zeroes, or the first bytes that a writer has written over zeroes.
    const absl::string_view found(header.magic, sizeof(header.magic));
    const size_t written = found.find_last_not_of('\0') + 1;  // npos + 1 == 0
    if (std::memcmp(found.data(), kFlanMagic, written) == 0) {
      return MakeError(ErrorCode::kNotReady,
                       "frame ring: its header is not written yet");
    }
    return RingMismatch("magic", "'FLAN'",
                        absl::StrCat("'", Printable(found), "'"));
  }
  if (header.version != kFlanVersion) {
    return RingMismatch("version", absl::StrCat(kFlanVersion),
                        absl::StrCat(header.version));
  }
  FrameGeometry geometry = {.width = header.width,
                            .height = header.height,
                            .channels = header.channels,
                            .capacity = header.capacity,
                            .kind = kind};
  TANDEM_RETURN_IF_ERROR(CheckLimits(ErrorCode::kLayoutMismatch, geometry));
  if (header.format != FormatOf(header.channels)) {
    return RingMismatch(
        absl::StrCat("the format of ", header.channels, " channels"),
        absl::StrFormat("0x%08x", FormatOf(header.channels)),
        absl::StrFormat("0x%08x", header.format));
  }
  if (header.payload_size < geometry.FrameBytes() ||
      header.payload_size > geometry.FrameBytes() + kMaxMetadataBytes) {
    return RingMismatch("payload_size",
                        absl::StrCat("in ", geometry.FrameBytes(), " .. ",
                                     geometry.FrameBytes() + kMaxMetadataBytes),
                        absl::StrCat(header.payload_size));
  }
  geometry.metadata_bytes =
      static_cast<uint32_t>(header.payload_size - geometry.FrameBytes());
  if (header.slot_size != sizeof(FlanSlot) + uint64_t{header.payload_size}) {
    return RingMismatch(
        "slot_size",
        absl::StrCat(sizeof(FlanSlot), " more than payload_size ",
                     header.payload_size),
        absl::StrCat(header.slot_size));
  }
  if (FrameRingBytes(header) > ring_bytes) {
    return RingMismatch(
        absl::StrCat("room for ", header.capacity, " slots of ",
                     header.slot_size, " bytes, ", FrameRingBytes(header)),
        "bytes in all", absl::StrCat(ring_bytes));
  }
  return geometry;
}

}  // namespace tandem

#include "transport/frame_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "transport/frames/frame_slot.h"
#include "transport/frames/racy_copy.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

// The words may belong to different frames.
FlanHeader CopyHeader(std::span<const std::byte> ring) {
  FlanHeader copy;
  RacyCopy(std::as_writable_bytes(std::span(&copy, 1)),
           ring.first(sizeof(copy)), Cache::kInto);
  return copy;
}

}  // namespace

absl::StatusOr<FrameReader> FrameReader::Attach(std::span<const std::byte> ring,
                                                int64_t grace_ns,
                                                FrameKind kind) {
  if (ring.size() < sizeof(FlanHeader) ||
      reinterpret_cast<uintptr_t>(ring.data()) % alignof(FlanHeader) != 0) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("frame ring: expected at least ", sizeof(FlanHeader),
                     " bytes for its header, found ", ring.size()));
  }
  // Accepts two equal copies: a copy that a writer has torn does not occur
  // twice.
  constexpr int kCopies = 64;
  FrameGeometry before = {.capacity = 0};  // none
  absl::Status status;
  for (int copy = 0; copy < kCopies; ++copy) {
    const absl::StatusOr<FrameGeometry> geometry =
        CheckFrameRing(CopyHeader(ring), ring.size(), kind);
    status = geometry.status();
    if (status.ok() && before == *geometry) {
      return FrameReader(ring, *geometry, grace_ns);
    }
    before = status.ok() ? *geometry : FrameGeometry{.capacity = 0};
    if (!status.ok()) YieldCore();
  }
  if (!status.ok()) return status;
  return MakeError(ErrorCode::kNotReady,
                   "frame ring: its header keeps changing");
}

bool FrameReader::Invalidated() const {
  // relaxed: the flag publishes no other data.
  return (header()->flags.load(std::memory_order_relaxed) & kFlanInvalidated) !=
         0;
}

uint64_t FrameReader::Head() const {
  // relaxed: for display; publishes no other data.
  return header()->head.load(std::memory_order_relaxed);
}

bool FrameReader::HeaderIsOurs() const {
  const FlanHeader now = CopyHeader(ring_);
  const auto same = [&](size_t begin, size_t end) {
    return std::memcmp(reinterpret_cast<const char*>(&kept_) + begin,
                       reinterpret_cast<const char*>(&now) + begin,
                       end - begin) == 0;
  };
  return same(0, offsetof(FlanHeader, flags)) &&
         same(offsetof(FlanHeader, capacity), offsetof(FlanHeader, head));
}

FrameReader::Copied FrameReader::CopyOut(uint64_t number,
                                         std::span<std::byte> pixels,
                                         Frame* into) {
  const auto slot = FrameSlot<const std::byte>::Of(ring_, geometry_, number);
  if (slot.LoadSeq() != FlanSeqWhole(number)) return Copied::kTorn;
  // SYNC(flan.seq): fence; the number that marks it complete before the
  // payload.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::span<const std::byte> payload = slot.payload();
  const uint64_t frame_len = slot.LoadFrameLen();
  const uint64_t metadata_len = slot.LoadMetadataLen();
  const bool sensible = frame_len <= geometry_.FrameBytes() &&
                        metadata_len <= payload.size() - frame_len;
  if (sensible) {
    const size_t wanted = std::min<size_t>(frame_len, pixels.size());
    RacyCopy(pixels, payload.first(wanted), Cache::kInto);
    into->metadata.resize(metadata_len);
    RacyCopy(std::as_writable_bytes(
                 std::span(into->metadata.data(), into->metadata.size())),
             payload.subspan(frame_len, metadata_len), Cache::kInto);
  }
  // SYNC(flan.overwrite): fence; the copy before the second load.
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t seq = slot.LoadSeq();
  // relaxed: the fence above orders it after the copy.
  const uint64_t head = header()->head.load(std::memory_order_relaxed);
  // A misaligned seq can tear, so it alone proves nothing.
  if (seq != FlanSeqWhole(number) ||
      !(slot.SeqIsAligned() || HeadProves(number, head, geometry_.capacity))) {
    return Copied::kTorn;
  }
  if (!sensible) return Copied::kSenseless;
  into->number = number;
  into->frame_len = frame_len;
  return Copied::kWhole;
}

FrameReader::Found FrameReader::Read(uint64_t beyond,
                                     std::span<std::byte> pixels, Frame* into) {
  // Each attempt fails by a header that is being rewritten, or by a writer that
  // has reached the slot again.
  constexpr int kAttempts = 16;
  enum { kNothingYet, kOtherHeader, kEarlierHead } found = kNothingYet;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) Relax();
    if (!HeaderIsOurs()) {
      found = kOtherHeader;
      continue;
    }
    header_grace_.Clear();
    // SYNC(flan.commit): acquire; the head before its slot.
    const uint64_t head = header()->head.load(std::memory_order_acquire);
    if (head < seen_ || head == 0) {
      found = head == 0 ? kNothingYet : kEarlierHead;
      continue;
    }
    head_grace_.Clear();
    if (head <= beyond) return Found::kNothing;
    found = kNothingYet;
    switch (CopyOut(head, pixels, into)) {
      case Copied::kWhole:
        seen_ = head;
        into->width = geometry_.width;
        into->height = geometry_.height;
        into->channels = geometry_.channels;
        into->metrics = Metrics();
        if (into->frame_len < pixels.size()) {
          std::ranges::fill(pixels.subspan(into->frame_len), std::byte{0});
        }
        return Found::kFrame;
      case Copied::kSenseless:
        return Found::kBroken;
      case Copied::kTorn:
        break;
    }
  }
  if (found == kOtherHeader && header_grace_.Expired()) return Found::kBroken;
  if (found == kEarlierHead && head_grace_.Expired()) {
    // The writer has restarted.
    head_grace_.Clear();
    seen_ = delivered_ = 0;
    return Read(/*beyond=*/0, pixels, into);
  }
  return Found::kNothing;
}

FrameReader::Found FrameReader::NewestTo(std::span<std::byte> pixels,
                                         Frame* into) {
  return Read(/*beyond=*/0, pixels, into);
}

FrameReader::Found FrameReader::NextTo(std::span<std::byte> pixels,
                                       Frame* into) {
  // The flag first: frames published before the flag are still returned.
  const bool invalidated = Invalidated();
  const Found found = Read(delivered_, pixels, into);
  if (found == Found::kFrame) {
    if (delivered_ != 0) dropped_ += into->number - delivered_ - 1;
    delivered_ = into->number;
  }
  return found == Found::kNothing && invalidated ? Found::kInvalidated : found;
}

FrameReader::Found FrameReader::Newest(Frame* into) {
  into->pixels.resize(geometry_.FrameBytes());
  return NewestTo(into->pixels, into);
}

FrameReader::Found FrameReader::Next(Frame* into) {
  into->pixels.resize(geometry_.FrameBytes());
  return NextTo(into->pixels, into);
}

}  // namespace tandem

#include "transport/frame_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/frames/frame_slot.h"
#include "transport/frames/racy_copy.h"

namespace tandem {

absl::StatusOr<uint64_t> FrameWriter::RingBytes(const FrameGeometry& geometry) {
  TANDEM_ASSIGN_OR_RETURN(const FlanHeader header, PlanFrameRing(geometry));
  return FrameRingBytes(header);
}

absl::StatusOr<FrameWriter> FrameWriter::Create(std::span<std::byte> ring,
                                                const FrameGeometry& geometry) {
  TANDEM_ASSIGN_OR_RETURN(const FlanHeader header, PlanFrameRing(geometry));
  if (ring.size() < FrameRingBytes(header) ||
      reinterpret_cast<uintptr_t>(ring.data()) % alignof(FlanHeader) != 0) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("frame ring: expected ", FrameRingBytes(header),
                     " bytes, aligned to ", alignof(FlanHeader), "; found ",
                     ring.size(), " at ",
                     reinterpret_cast<uintptr_t>(ring.data())));
  }
  FrameWriter writer(ring, geometry);
  for (uint64_t number = 1; number <= geometry.capacity; ++number) {
    FrameSlot<std::byte>::Of(ring, geometry, number).StoreSeq(0);
  }
  std::memcpy(ring.data(), static_cast<const void*>(&header), sizeof(header));
  return writer;
}

FrameWriter::FrameWriter(std::span<std::byte> ring,
                         const FrameGeometry& geometry)
    : ring_(ring),
      geometry_(geometry),
      cache_(CacheFor(geometry.FrameBytes(), ring.size())) {}

FrameSlot<std::byte> FrameWriter::NextSlot() const {
  return FrameSlot<std::byte>::Of(ring_, geometry_, head_ + 1);
}

void FrameWriter::Begin(FrameSlot<std::byte> slot) {
  slot.StoreSeq(FlanSeqWriting(head_ + 1));
  // SYNC(flan.overwrite): fence; the head and the odd seq before the payload: a
  // reader that copies a byte of it and then reads seq again sees the write.
  std::atomic_thread_fence(std::memory_order_release);
  StoresBefore();  // RacyCopy or a renderer may store the payload by
                   // non-temporal stores
}

uint64_t FrameWriter::End(FrameSlot<std::byte> slot, uint32_t frame_len,
                          const FrameMetrics& metrics,
                          absl::string_view metadata) {
  const std::string_view text(
      metadata.data(),
      std::min<size_t>(metadata.size(), geometry_.metadata_bytes));
  RacyCopy(slot.payload().subspan(frame_len), std::as_bytes(std::span(text)),
           Cache::kInto);
  slot.StoreLengths(frame_len, static_cast<uint32_t>(text.size()));
  StoresBefore();
  // SYNC(flan.seq): fence; the payload before the number that marks it
  // complete.
  std::atomic_thread_fence(std::memory_order_release);
  slot.StoreSeq(FlanSeqWhole(++head_));
  // relaxed: flan.commit publishes them, and no reader needs all three at once.
  header()->last_reward.store(metrics.last_reward, std::memory_order_relaxed);
  // relaxed: as above.
  header()->rolling_return.store(metrics.rolling_return,
                                 std::memory_order_relaxed);
  // relaxed: as above.
  header()->step_rate_hz.store(metrics.step_rate_hz, std::memory_order_relaxed);
  // SYNC(flan.commit): release; the slot before the head.
  header()->head.store(head_, std::memory_order_release);
  reserved_ = false;
  return head_;
}

std::span<std::byte> FrameWriter::Reserve() {
  const FrameSlot<std::byte> slot = NextSlot();
  if (!std::exchange(reserved_, true)) Begin(slot);
  return slot.payload().first(geometry_.FrameBytes());
}

uint64_t FrameWriter::Commit(const FrameMetrics& metrics,
                             absl::string_view metadata) {
  if (!reserved_) return 0;
  return End(NextSlot(), static_cast<uint32_t>(geometry_.FrameBytes()), metrics,
             metadata);
}

uint64_t FrameWriter::Publish(std::span<const std::byte> frame,
                              const FrameMetrics& metrics,
                              absl::string_view metadata) {
  if (frame.size() > geometry_.FrameBytes()) return 0;
  const FrameSlot<std::byte> slot = NextSlot();
  if (!std::exchange(reserved_, true)) Begin(slot);
  RacyCopy(slot.payload(), frame, cache_);
  return End(slot, static_cast<uint32_t>(frame.size()), metrics, metadata);
}

void FrameWriter::Invalidate() {
  reserved_ = false;
  // relaxed: the flag publishes no other data.
  header()->flags.store(kFlanInvalidated, std::memory_order_relaxed);
}

}  // namespace tandem

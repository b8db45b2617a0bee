// One slot of a FLAN ring, in shared memory.
//
// Data flow: a frame's number -> its slot's offset -> its sequence number,
// lengths and bytes.
// Ownership: a view of the ring; writer and reader make one for each frame. The
// slot, and its seq, may be misaligned: slot_size decides.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/layout/flan.h"
#include "schema/layout/shared_word.h"
#include "transport/frame_geometry.h"
#include "transport/frames/racy_copy.h"

namespace tandem {

// Whether the copy of frame `number` is complete, given the head that was read
// after the copy. The frame that overwrites the slot begins at the head before
// its own, number + capacity - 1. A head below `number` was torn by a
// header-only writer.
constexpr bool HeadProves(uint64_t number, uint64_t head, uint32_t capacity) {
  return head >= number && head - number + 2 <= capacity;
}

// `Byte` is std::byte for the writer, const std::byte for readers. A value
// type; all members are wait-free.
template <typename Byte>
class FrameSlot {
 public:
  // Returns the slot of frame `number` (from 1) in a ring of this geometry.
  static FrameSlot Of(std::span<Byte> ring, const FrameGeometry& geometry,
                      uint64_t number) {
    const uint64_t bytes =
        sizeof(FlanSlot) + geometry.FrameBytes() + geometry.metadata_bytes;
    const uint64_t index = (number - 1) % geometry.capacity;
    return FrameSlot(ring.subspan(sizeof(FlanHeader) + index * bytes, bytes));
  }

  // Whether one load or store can access seq.
  bool SeqIsAligned() const {
    return reinterpret_cast<uintptr_t>(slot_.data()) % sizeof(uint64_t) == 0;
  }

  uint64_t LoadSeq() const {
    if (SeqIsAligned()) {
      // relaxed: the reader's fences order it.
      return reinterpret_cast<const SharedWord<uint64_t>*>(slot_.data())
          ->load(std::memory_order_relaxed);
    }
    return Load<uint64_t>(offsetof(FlanSlot, seq));  // may tear
  }

  void StoreSeq(uint64_t seq) {
    if (SeqIsAligned()) {
      // relaxed: the writer's fences order it.
      reinterpret_cast<SharedWord<uint64_t>*>(slot_.data())
          ->store(seq, std::memory_order_relaxed);
    } else {
      Store(offsetof(FlanSlot, seq), seq);
    }
  }

  uint32_t LoadFrameLen() const {
    return Load<uint32_t>(offsetof(FlanSlot, frame_len));
  }
  uint32_t LoadMetadataLen() const {
    return Load<uint32_t>(offsetof(FlanSlot, metadata_len));
  }
  void StoreLengths(uint32_t frame_len, uint32_t metadata_len) {
    Store(offsetof(FlanSlot, frame_len), frame_len);
    Store(offsetof(FlanSlot, metadata_len), metadata_len);
  }

  // Frame and metadata.
  std::span<Byte> payload() const { return slot_.subspan(sizeof(FlanSlot)); }

 private:
  explicit FrameSlot(std::span<Byte> slot) : slot_(slot) {}

  template <typename T>
  T Load(size_t offset) const {
    T value;
    RacyCopy(std::as_writable_bytes(std::span(&value, 1)),
             slot_.subspan(offset, sizeof(T)), Cache::kInto);
    return value;
  }
  template <typename T>
  void Store(size_t offset, T value) {
    RacyCopy(slot_.subspan(offset, sizeof(T)),
             std::as_bytes(std::span(&value, 1)), Cache::kInto);
  }

  std::span<Byte> slot_;
};

}  // namespace tandem

// FrameWriter: publishes frames into a FLAN ring. Never waits.
//
// Data flow: pixels -> the next slot, with an odd seq during the write -> even
// seq -> head; readers take the newest.
// Ownership: the caller owns the ring's memory, which must outlive the writer.
// A ring has one writer, ever; the writer does not read values that readers
// could have changed.
//
//   absl::StatusOr<FrameWriter> writer = FrameWriter::Create(
//       ring, {.width = 640, .height = 480, .metadata_bytes = 256});
//   RenderInto(writer->Reserve());
//   uint64_t head = writer->Commit(metrics, R"({"step": 12})");
//
// States: idle, reserved. Reserve: idle or reserved -> reserved. Commit:
// reserved -> idle. Publish, Invalidate: any -> idle.
//
//  word            writer       readers       publishes       initially
//  header.head     FrameWriter  FrameReaders  slots           0
//  slot.seq        FrameWriter  FrameReaders  (by flan.*)     0
//  header.metrics  FrameWriter  FrameReaders  (by flan.commit) 0
//  header.flags    FrameWriter  FrameReaders  nothing         0
//
// The order, for frame h; docs/protocol.md, "Frames", has the argument:
//   seq = 2h+1; fence; frame and metadata; fence; seq = 2h+2; head = h

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/flan.h"
#include "transport/frame_geometry.h"

namespace tandem {

enum class Cache;  // racy_copy.h
template <typename Byte>
class FrameSlot;  // frame_slot.h

// Not thread-safe. After Create nothing blocks, allocates or makes a system
// call. A moved-from writer may only be assigned to or destroyed.
class FrameWriter {
 public:
  // Returns the bytes of header and slots. Errors: as PlanFrameRing.
  static absl::StatusOr<uint64_t> RingBytes(const FrameGeometry& geometry);

  // Makes `ring`, which is 8-byte aligned, an empty ring: head 0, all slots
  // empty. kInvalidArgument: as PlanFrameRing, or `ring` is too short.
  static absl::StatusOr<FrameWriter> Create(std::span<std::byte> ring,
                                            const FrameGeometry& geometry);

  FrameWriter(FrameWriter&&) = default;
  FrameWriter& operator=(FrameWriter&&) = default;

  // Returns the next slot's width * height * channels frame bytes, for
  // rendering directly into them. They hold an old frame. Readers skip the slot
  // until Commit.
  std::span<std::byte> Reserve();

  // Publishes the reserved slot, and returns the new head. Without one
  // publishes nothing and returns 0. Cuts metadata off at
  // geometry().metadata_bytes.
  uint64_t Commit(const FrameMetrics& metrics, absl::string_view metadata);

  // Drops a reserved slot, copies a frame to the next slot and publishes it;
  // returns the new head. If the frame is larger than the slot's, publishes
  // nothing and returns 0. A smaller frame is published with its size.
  uint64_t Publish(std::span<const std::byte> frame,
                   const FrameMetrics& metrics, absl::string_view metadata);

  // Marks the ring: no frame will follow. A second call has no effect.
  void Invalidate();

  uint64_t head() const { return head_; }
  const FrameGeometry& geometry() const { return geometry_; }

 private:
  FrameWriter(std::span<std::byte> ring, const FrameGeometry& geometry);

  FlanHeader* header() const {
    return reinterpret_cast<FlanHeader*>(ring_.data());
  }
  FrameSlot<std::byte> NextSlot() const;
  void Begin(FrameSlot<std::byte> slot);
  uint64_t End(FrameSlot<std::byte> slot, uint32_t frame_len,
               const FrameMetrics& metrics, absl::string_view metadata);

  std::span<std::byte> ring_;
  FrameGeometry geometry_;
  Cache cache_;
  uint64_t head_ = 0;  // published; the ring's copy is not read
  bool reserved_ = false;
};

}  // namespace tandem

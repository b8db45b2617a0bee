// FrameWriter: publishes frames into a FLAN ring. Never waits.
//
// Data flow: pixels -> the next slot, whose seq is odd meanwhile -> even seq ->
// head; readers take the newest.
// Ownership: the ring's memory is the caller's and outlives the writer. A ring
// has one writer, ever: it does not read back what readers could have changed.
//
//   absl::StatusOr<FrameWriter> writer = FrameWriter::Create(
//       ring, {.width = 640, .height = 480, .metadata_bytes = 256});
//   RenderInto(writer->Loan());
//   uint64_t head = writer->Commit(metrics, R"({"step": 12})");
//
// States: idle, loaned. Loan: idle or loaned -> loaned. Commit: loaned -> idle.
// Publish, Invalidate: any -> idle.
//
//  word            writer       readers       publishes       initially
//  header.head     FrameWriter  FrameReaders  slots           0
//  slot.seq        FrameWriter  FrameReaders  (by flan.*)     0
//  header.metrics  FrameWriter  FrameReaders  (by flan.commit) 0
//  header.flags    FrameWriter  FrameReaders  nothing         0
//
// The order, for frame h; docs/protocol.md, "Frames", has the argument:
//   seq = 2h+1; fence; frame and metadata; fence; seq = 2h+2; head = h

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_WRITER_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/flan.h"
#include "transport/base/frame_geometry.h"
#include "transport/frames/frame_slot.h"
#include "transport/frames/racy_copy.h"

namespace tandem {

// Not thread-safe. After Create nothing blocks, allocates or makes a system
// call. A moved-from writer may only be assigned to or destroyed.
class FrameWriter {
 public:
  // Bytes of header and slots. kInvalidArgument as PlanFrameRing.
  static absl::StatusOr<uint64_t> RingBytes(const FrameGeometry& geometry);

  // Makes `ring`, 8-byte aligned, an empty ring: head 0, every slot empty.
  // kInvalidArgument: as PlanFrameRing, or the ring's memory is too short.
  static absl::StatusOr<FrameWriter> Create(std::span<std::byte> ring,
                                            const FrameGeometry& geometry);

  FrameWriter(FrameWriter&&) = default;
  FrameWriter& operator=(FrameWriter&&) = default;

  // The next slot's frame bytes, width * height * channels of them, to render
  // into. What they hold is an old frame. Readers skip the slot until Commit.
  std::span<std::byte> Loan();

  // Publishes the loan. Metadata beyond geometry().metadata_bytes is cut off.
  // The new head; 0 without a loan, and nothing is published.
  uint64_t Commit(const FrameMetrics& metrics, absl::string_view metadata);

  // Copies a frame to the next slot and publishes it; a loan is dropped. The
  // new head; 0 if the frame is longer than a slot's, and nothing is published.
  // A shorter one is published as it is.
  uint64_t Publish(std::span<const std::byte> frame,
                   const FrameMetrics& metrics, absl::string_view metadata);

  // Tells readers that no frame will follow. Safe twice.
  void Invalidate();

  uint64_t head() const { return head_; }
  const FrameGeometry& geometry() const { return geometry_; }

 private:
  FrameWriter(std::span<std::byte> ring, const FrameGeometry& geometry);

  FlanHeader* header() const {
    return reinterpret_cast<FlanHeader*>(ring_.data());
  }
  FrameSlot<std::byte> NextSlot() const {
    return FrameSlot<std::byte>::Of(ring_, geometry_, head_ + 1);
  }
  void Begin(FrameSlot<std::byte> slot);
  uint64_t End(FrameSlot<std::byte> slot, uint32_t frame_len,
               const FrameMetrics& metrics, absl::string_view metadata);

  std::span<std::byte> ring_;
  FrameGeometry geometry_;
  Cache cache_;
  uint64_t head_ = 0;  // what was published; the ring's copy isn't read
  bool loaned_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_WRITER_H_

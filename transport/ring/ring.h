// The RPC ring: messages of up to half its capacity from one process to
// another, in order, each delivered once.
//
// Data flow: message -> RingWriter copies it into the data, then publishes
// write_pos -> RingReader copies it out, then publishes read_pos.
// Ownership: header and data lie in the mapped region, which outlives both
// views; one RingWriter and one RingReader exist for a ring, in one process
// each (two threads of one process will do).
//
//   absl::StatusOr<RingWriter> writer =
//       RingWriter::Attach(header, data, reader_bell);  // engine
//   const Deadline deadline = Deadline::After(1);
//   ErrorCode code = writer->Write(envelope, deadline, waiter, watch);
//
//   absl::StatusOr<RingReader> reader =
//       RingReader::Attach(header, data, writer_bell);  // client
//   std::vector<std::byte> buffer(reader->max_message_bytes());
//   size_t bytes = 0;
//   while (reader->TryRead(buffer, &bytes) == ErrorCode::kOk) Handle(...);
//
// The peer's words are not trusted. Each side goes by a position of its own
// that the peer cannot reach, and takes from the peer an index, and lengths,
// that it checks before use; whatever the peer writes, and whenever, nothing
// outside the data is touched. What a peer cannot have meant counts as nothing
// new (full, empty) at first, since a writer may store a word byte by
// byte (Python's struct.pack_into clears it first). If it is still there after
// `grace_ns`, the answer is kBrokenPeer, and remains so until the side
// attaches again.
//
//  word       writer      reader      publishes          initially
//  write_pos  RingWriter  RingReader  entries            0
//  read_pos   RingReader  RingWriter  free room          0
//  lengths    RingWriter  RingReader  (by ring.commit)   0
//
// The wrap rule. Positions wrap at 2^32, which every capacity divides, and are
// compared by subtraction only: they differ by at most the capacity. An entry
// is the message's length (u32), the message, and padding to 8 bytes. It is
// never split: if it does not fit between its offset and the end of the data,
// the writer stores kRingSkip there in place of a length, and the entry at the
// start of the data.

#ifndef TANDEM_TRANSPORT_RING_RING_H_
#define TANDEM_TRANSPORT_RING_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/base/clock.h"
#include "transport/base/grace_period.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"

namespace tandem {

// The largest message of a ring of `capacity` bytes: with its length it fills
// half of it, so that an empty ring takes it wherever the positions stand.
constexpr uint32_t MaxRingMessageBytes(uint32_t capacity) {
  return capacity / 2 - 4;  // the length
}

// The bytes of an entry: length, message and padding.
constexpr uint32_t RingEntryBytes(uint32_t message_bytes) {
  constexpr uint32_t kMask = kRingEntryAlignment - 1;
  return (static_cast<uint32_t>(sizeof(uint32_t)) + message_bytes + kMask) &
         ~kMask;
}

// The bytes from an entry, or a skip, to what follows it; 0: no writer stores
// `length` there. Of the entry's offset: `to_end` bytes are left up to the end
// of the data, `published` bytes up to write_pos.
constexpr uint32_t RingEntryStride(uint32_t length, uint32_t capacity,
                                   uint32_t to_end, uint32_t published) {
  uint32_t bytes = to_end;
  if (length == kRingSkip) {
    // Only what lacks room for some entry is skipped. At the start of the data
    // that is never so: one skip does not follow another.
    if (to_end >= capacity / 2) return 0;
  } else {
    if (length > MaxRingMessageBytes(capacity)) return 0;
    bytes = RingEntryBytes(length);
  }
  return bytes <= to_end && bytes <= published ? bytes : 0;
}

// Longer than a writer is off its core between two bytes.
inline constexpr int64_t kRingGraceNs = 20'000'000;

// Empties the ring: both positions 0. Only while neither side, or only the
// caller, is attached; that side must attach again.
void ResetRing(RingHeader* header);

// What both sides keep of a ring.
class RingSide {
 public:
  uint32_t capacity() const { return capacity_; }
  uint32_t max_message_bytes() const { return MaxRingMessageBytes(capacity_); }

 protected:
  // See RingWriter::Attach.
  static absl::StatusOr<RingSide> Open(RingHeader* header,
                                       std::span<std::byte> data,
                                       Doorbell peer_bell, int64_t grace_ns);
  // The answer to an invalid word of the peer: `unchanged` during the grace
  // period, then kBrokenPeer.
  ErrorCode Refuse(ErrorCode unchanged);

  RingHeader* header_;
  std::byte* data_;
  uint32_t capacity_;
  Doorbell peer_bell_;
  // Of one's own, what was published: the region's copy isn't read. Of the
  // peer's, what was last seen and found valid.
  uint32_t write_pos_ = 0;
  uint32_t read_pos_ = 0;
  GracePeriod grace_;
  bool broken_ = false;

 private:
  RingSide(RingHeader* header, std::span<std::byte> data, Doorbell peer_bell,
           int64_t grace_ns);
};

// The sending side. Not thread-safe. Writes allocate nothing.
// A moved-from writer may only be assigned to or destroyed.
class RingWriter : public RingSide {
 public:
  // Takes up the ring where it stands. `data` lies 8-byte aligned behind the
  // header and is as long as the ring's capacity, a power of two from
  // kMinRingBytes to kMaxRingBytes. `reader_bell` is what the reader sleeps on.
  // kInvalidArgument: invalid size or alignment. kBrokenPeer: the positions
  // have been invalid for `grace_ns`; ResetRing repairs that while no other
  // side is attached.
  static absl::StatusOr<RingWriter> Attach(RingHeader* header,
                                           std::span<std::byte> data,
                                           Doorbell reader_bell,
                                           int64_t grace_ns = kRingGraceNs);

  RingWriter(RingWriter&&) = default;
  RingWriter& operator=(RingWriter&&) = default;

  // Sends a message and rings the reader's bell. Doesn't wait; makes a system
  // call only to wake a reader that sleeps.
  // kOk: published. Otherwise nothing was written: kRingFull, the reader must
  // read first; kMessageTooLarge, it will never fit; kBrokenPeer, for good.
  ErrorCode TryWrite(std::span<const std::byte> message);

  // As TryWrite, but waits for room, with `waiter` on this side's own bell.
  // Instead of kRingFull: kStepTimeout at the deadline, or what `watch` says.
  ErrorCode Write(std::span<const std::byte> message, Deadline deadline,
                  Waiter& waiter, WaitWatch& watch);

 private:
  explicit RingWriter(const RingSide& side) : RingSide(side) {}
  bool HasRoom(uint32_t bytes) const;
  bool RefreshReadPos();
};

// The receiving side. Not thread-safe. Reads allocate nothing.
// A moved-from reader may only be assigned to or destroyed.
class RingReader : public RingSide {
 public:
  // As RingWriter::Attach. Messages that wait in the ring will be read.
  static absl::StatusOr<RingReader> Attach(RingHeader* header,
                                           std::span<std::byte> data,
                                           Doorbell writer_bell,
                                           int64_t grace_ns = kRingGraceNs);

  RingReader(RingReader&&) = default;
  RingReader& operator=(RingReader&&) = default;

  // Copies the oldest message to the start of `buffer` and rings the writer's
  // bell. Doesn't wait; makes a system call only to wake a writer that sleeps.
  // kOk: `*bytes` of `buffer` are the message. kRingEmpty: there is none.
  // kInvalidArgument: it has `*bytes`, more than `buffer` (never happens with
  // max_message_bytes()); it stays in the ring. kBrokenPeer: for good. Unless
  // kOk, the buffer is as it was; unless kOk or kInvalidArgument, so is *bytes.
  ErrorCode TryRead(std::span<std::byte> buffer, size_t* bytes);

  // As TryRead, but waits for a message, with `waiter` on this side's own bell.
  // Instead of kRingEmpty: kStepTimeout at the deadline, or what `watch` says.
  ErrorCode Read(std::span<std::byte> buffer, size_t* bytes, Deadline deadline,
                 Waiter& waiter, WaitWatch& watch);

 private:
  explicit RingReader(const RingSide& side) : RingSide(side) {}
  ErrorCode FindEntry(uint32_t* offset, uint32_t* length);
  bool RefreshWritePos();
  void Free(uint32_t bytes);
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RING_RING_H_

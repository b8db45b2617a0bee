// The RPC ring: a queue of messages from one process to another. It delivers
// each message once, in order.
//
// Data flow: message -> RingWriter copies it into the data, then publishes
// write_pos -> RingReader copies it out, then publishes read_pos.
// Ownership: header and data are in the mapped region, which outlives both
// ends. A ring has one RingWriter and one RingReader, in two processes or in
// two threads of one process.
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
// An entry is the message's length (u32), the message, and padding to 8 bytes.
// It fills at most half of the data.
//
// Neither side trusts the other:
//  - Each side keeps its own position in private memory.
//  - It checks every position and length of the other side before it uses it.
//    So it never accesses a byte outside the data.
//  - It ignores an invalid value at first, and returns kRingFull or kRingEmpty:
//    a writer in Python may store a word byte by byte, and zeroes it before.
//  - If the value is invalid for `grace_ns`, it returns kBrokenPeer, from then
//    on in every call. A new Attach is then necessary.
//
//  word       writer      reader      publishes          initially
//  write_pos  RingWriter  RingReader  entries            0
//  read_pos   RingReader  RingWriter  free room          0
//  lengths    RingWriter  RingReader  (by ring.commit)   0
//
// The wrap rule. Positions count bytes and wrap at 2^32. Every capacity divides
// 2^32, so a position modulo the capacity is an offset in the data. Both sides
// compare positions by subtraction only. An entry is never split: if it does
// not fit between its offset and the end of the data, the writer stores
// kRingSkip there in place of a length, and the entry at the start of the data.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/grace_period.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"

namespace tandem {

// The largest message of a ring of `capacity` bytes. Its entry is half of the
// capacity. So it fits into an empty ring at every position.
constexpr uint32_t MaxRingMessageBytes(uint32_t capacity) {
  return capacity / 2 - 4;  // the entry's length word
}

// The bytes of an entry: length, message and padding.
constexpr uint32_t RingEntryBytes(uint32_t message_bytes) {
  constexpr uint32_t kMask = kRingEntryAlignment - 1;
  return (static_cast<uint32_t>(sizeof(uint32_t)) + message_bytes + kMask) &
         ~kMask;
}

// Returns the number of bytes from an entry, or a skip, to the next one; 0 if a
// correct writer never stores `length` there. `to_end`: bytes from the entry's
// offset to the end of the data. `published`: bytes from the entry to
// write_pos.
constexpr uint32_t RingEntryStride(uint32_t length, uint32_t capacity,
                                   uint32_t to_end, uint32_t published) {
  uint32_t bytes = to_end;
  if (length == kRingSkip) {
    // A writer skips only if an entry does not fit before the end of the data,
    // and an entry fills at most half of the data. After a skip the offset is
    // 0, where every entry fits: a skip never follows a skip.
    if (to_end >= capacity / 2) return 0;
  } else {
    if (length > MaxRingMessageBytes(capacity)) return 0;
    bytes = RingEntryBytes(length);
  }
  return bytes <= to_end && bytes <= published ? bytes : 0;
}

// The scheduler may preempt a writer between two bytes of a word, but not for
// so long.
inline constexpr int64_t kRingGraceNs = 20'000'000;

// Empties the ring: sets both positions to 0. Legal while no other process or
// thread has an end of the ring. The caller must then attach its end again.
void ResetRing(RingHeader* header);

// The data of a ring in a region: the bytes after its header.
inline std::span<std::byte> RingDataOf(RingHeader* header, uint32_t capacity) {
  return {reinterpret_cast<std::byte*>(header + 1), capacity};
}

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
  // This side's own position is the value that it published last; it is never
  // read back from the region. The peer's is the last valid value read.
  uint32_t write_pos_ = 0;
  uint32_t read_pos_ = 0;
  GracePeriod grace_;
  bool broken_ = false;

 private:
  RingSide(RingHeader* header, std::span<std::byte> data, Doorbell peer_bell,
           int64_t grace_ns)
      : header_(header),
        data_(data.data()),
        capacity_(static_cast<uint32_t>(data.size())),
        peer_bell_(peer_bell),
        grace_(grace_ns) {}
};

// The sending side. Not thread-safe. Writes allocate nothing.
// A moved-from writer may only be assigned to or destroyed.
class RingWriter : public RingSide {
 public:
  // Continues at the ring's current positions. `data` is 8-byte aligned; its
  // size is the ring's capacity, a power of two from kMinRingBytes to
  // kMaxRingBytes. The reader sleeps on `reader_bell`. Blocks for `grace_ns` at
  // most, and only while the positions are invalid.
  //  - kInvalidArgument: invalid size or alignment.
  //  - kBrokenPeer: the positions were invalid for `grace_ns`. ResetRing
  //    repairs them.
  static absl::StatusOr<RingWriter> Attach(RingHeader* header,
                                           std::span<std::byte> data,
                                           Doorbell reader_bell,
                                           int64_t grace_ns = kRingGraceNs);

  RingWriter(RingWriter&&) = default;
  RingWriter& operator=(RingWriter&&) = default;

  // Copies `message` into the ring and publishes it. Never blocks. Makes a
  // system call only to wake a reader that sleeps.
  //  - kOk: published.
  //  - kRingFull: no room until the reader reads; nothing was published.
  //  - kMessageTooLarge: above max_message_bytes(); nothing was published.
  //  - kBrokenPeer: the peer's values are invalid, also in every later call;
  //    nothing was published.
  ErrorCode TryWrite(std::span<const std::byte> message);

  // As TryWrite, but waits for room; `waiter` sleeps on the writer's own bell.
  // Never returns kRingFull. Instead it returns kStepTimeout at the deadline,
  // or the error of `watch`.
  ErrorCode Write(std::span<const std::byte> message, Deadline deadline,
                  Waiter& waiter, WaitWatch& watch);

 private:
  explicit RingWriter(const RingSide& side) : RingSide(side) {}
  bool HasRoom(uint32_t bytes) const {
    return bytes <= capacity_ - (write_pos_ - read_pos_);
  }
  bool RefreshReadPos();
};

// The receiving side. Not thread-safe. Reads allocate nothing.
// A moved-from reader may only be assigned to or destroyed.
class RingReader : public RingSide {
 public:
  // As RingWriter::Attach, with the bell that the writer sleeps on. Messages
  // that are in the ring remain readable.
  static absl::StatusOr<RingReader> Attach(RingHeader* header,
                                           std::span<std::byte> data,
                                           Doorbell writer_bell,
                                           int64_t grace_ns = kRingGraceNs);

  RingReader(RingReader&&) = default;
  RingReader& operator=(RingReader&&) = default;

  // Copies the oldest message into `buffer` and removes it from the ring. Never
  // blocks. Makes a system call only to wake a writer that sleeps.
  //  - kOk: the first `*bytes` bytes of `buffer` are the message.
  //  - kRingEmpty: no message; `buffer` and `*bytes` are unchanged.
  //  - kInvalidArgument: `buffer` is smaller than the message, whose size is
  //    now in `*bytes`. The message stays in the ring; `buffer` is unchanged. A
  //    buffer of max_message_bytes() is always large enough.
  //  - kBrokenPeer: the peer's values are invalid, also in every later call;
  //    `buffer` and `*bytes` are unchanged.
  ErrorCode TryRead(std::span<std::byte> buffer, size_t* bytes);

  // As TryRead, but waits for a message; `waiter` sleeps on the reader's own
  // bell. Never returns kRingEmpty. Instead it returns kStepTimeout at the
  // deadline, or the error of `watch`.
  ErrorCode Read(std::span<std::byte> buffer, size_t* bytes, Deadline deadline,
                 Waiter& waiter, WaitWatch& watch);

 private:
  explicit RingReader(const RingSide& side) : RingSide(side) {}
  ErrorCode FindEntry(uint32_t* offset, uint32_t* length);
  bool RefreshWritePos();
  void Free(uint32_t bytes);
};

}  // namespace tandem

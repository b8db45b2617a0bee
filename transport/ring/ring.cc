#include "transport/ring/ring.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "schema/layout/shared_word.h"

namespace tandem {
namespace {

// An entry's length, or kRingSkip. Loaded as an atomic so that it is read once:
// a peer cannot change it between check and use.
SharedWord<uint32_t>& LengthAt(std::byte* data, uint32_t offset) {
  return *reinterpret_cast<SharedWord<uint32_t>*>(data + offset);
}

constexpr bool IsValid(uint32_t used, uint32_t capacity) {
  return used <= capacity && used % kRingEntryAlignment == 0;
}

}  // namespace

void ResetRing(RingHeader* header) {
  // SYNC(ring.free): release; nothing of ours before it needs to be seen.
  header->read_pos.store(0, std::memory_order_release);
  // SYNC(ring.commit): release; as above.
  header->write_pos.store(0, std::memory_order_release);
}

absl::StatusOr<RingSide> RingSide::Open(RingHeader* header,
                                        std::span<std::byte> data,
                                        Doorbell peer_bell, int64_t grace_ns) {
  if (!std::has_single_bit(data.size()) || data.size() < kMinRingBytes ||
      data.size() > kMaxRingBytes ||
      reinterpret_cast<uintptr_t>(data.data()) % kRingEntryAlignment != 0) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("ring data: expected a power of two of bytes from ",
                     kMinRingBytes, " to ", kMaxRingBytes, ", aligned to ",
                     kRingEntryAlignment, "; found ", data.size(), " bytes at ",
                     reinterpret_cast<uintptr_t>(data.data())));
  }
  RingSide side(header, data, peer_bell, grace_ns);
  for (;; YieldCore()) {
    // SYNC(ring.free): acquire; the reader's copies before we overwrite.
    side.read_pos_ = header->read_pos.load(std::memory_order_acquire);
    // SYNC(ring.commit): acquire; the index before the entries.
    side.write_pos_ = header->write_pos.load(std::memory_order_acquire);
    if (side.read_pos_ % kRingEntryAlignment == 0 &&
        IsValid(side.write_pos_ - side.read_pos_, side.capacity_)) {
      side.grace_.Clear();
      return side;
    }
    if (!side.grace_.Expired()) continue;
    return MakeError(
        ErrorCode::kBrokenPeer,
        absl::StrCat("ring of ", data.size(),
                     " bytes: expected multiples of 8 that differ by no more; "
                     "found write_pos ",
                     side.write_pos_, ", read_pos ", side.read_pos_,
                     ". Restart the engine."));
  }
}

ErrorCode RingSide::Refuse(ErrorCode unchanged) {
  broken_ = grace_.Expired();
  return broken_ ? ErrorCode::kBrokenPeer : unchanged;
}

absl::StatusOr<RingWriter> RingWriter::Attach(RingHeader* header,
                                              std::span<std::byte> data,
                                              Doorbell reader_bell,
                                              int64_t grace_ns) {
  TANDEM_ASSIGN_OR_RETURN(const RingSide side,
                          Open(header, data, reader_bell, grace_ns));
  return RingWriter(side);
}

// False: the region has an invalid position.
bool RingWriter::RefreshReadPos() {
  // SYNC(ring.free): acquire; the reader's copies before we overwrite.
  const uint32_t read_pos = header_->read_pos.load(std::memory_order_acquire);
  // It never goes back: no more is in use than before.
  if (!IsValid(write_pos_ - read_pos, write_pos_ - read_pos_)) return false;
  read_pos_ = read_pos;
  grace_.Clear();
  return true;
}

ErrorCode RingWriter::TryWrite(std::span<const std::byte> message) {
  if (broken_) return ErrorCode::kBrokenPeer;
  if (message.size() > max_message_bytes()) return ErrorCode::kMessageTooLarge;
  const uint32_t message_bytes = static_cast<uint32_t>(message.size());
  const uint32_t entry_bytes = RingEntryBytes(message_bytes);
  uint32_t offset = write_pos_ & (capacity_ - 1);
  const uint32_t to_end = capacity_ - offset;
  const uint32_t skipped_bytes = to_end < entry_bytes ? to_end : 0;
  const uint32_t needed_bytes = skipped_bytes + entry_bytes;
  if (!HasRoom(needed_bytes)) {
    if (!RefreshReadPos()) return Refuse(ErrorCode::kRingFull);
    if (!HasRoom(needed_bytes)) return ErrorCode::kRingFull;
  }
  if (skipped_bytes > 0) {
    // relaxed: published by ring.commit below.
    LengthAt(data_, offset).store(kRingSkip, std::memory_order_relaxed);
    offset = 0;
  }
  // The padding is zero; the entry's last 8 bytes are all of it that can be.
  std::memset(data_ + offset + entry_bytes - kRingEntryAlignment, 0,
              kRingEntryAlignment);
  // relaxed: published by ring.commit below.
  LengthAt(data_, offset).store(message_bytes, std::memory_order_relaxed);
  if (message_bytes > 0) {
    std::memcpy(data_ + offset + sizeof(uint32_t), message.data(),
                message_bytes);
  }
  grace_.Clear();
  write_pos_ += needed_bytes;
  // SYNC(ring.commit): release; the entry before the index.
  header_->write_pos.store(write_pos_, std::memory_order_release);
  peer_bell_.NotifyIfWaiting();
  return ErrorCode::kOk;
}

ErrorCode RingWriter::Write(std::span<const std::byte> message,
                            Deadline deadline, Waiter& waiter,
                            WaitWatch& watch) {
  ErrorCode outcome = ErrorCode::kRingFull;
  const ErrorCode waited = waiter.Until(
      [&] {
        outcome = TryWrite(message);
        return outcome != ErrorCode::kRingFull;
      },
      deadline, watch);
  return waited == ErrorCode::kOk ? outcome : waited;
}

absl::StatusOr<RingReader> RingReader::Attach(RingHeader* header,
                                              std::span<std::byte> data,
                                              Doorbell writer_bell,
                                              int64_t grace_ns) {
  TANDEM_ASSIGN_OR_RETURN(const RingSide side,
                          Open(header, data, writer_bell, grace_ns));
  return RingReader(side);
}

// False: the region has an invalid position.
bool RingReader::RefreshWritePos() {
  // SYNC(ring.commit): acquire; the index before the entries.
  const uint32_t write_pos = header_->write_pos.load(std::memory_order_acquire);
  const uint32_t published = write_pos - read_pos_;
  if (!IsValid(published, capacity_)) return false;
  if (published < write_pos_ - read_pos_) return false;  // it never goes back
  write_pos_ = write_pos;
  return true;
}

// Advances and publishes read_pos.
void RingReader::Free(uint32_t bytes) {
  read_pos_ += bytes;
  // SYNC(ring.free): release; our copy before the room is given back.
  header_->read_pos.store(read_pos_, std::memory_order_release);
  peer_bell_.NotifyIfWaiting();
}

// The published entry at read_pos_: kOk and an entry inside the data,
// kRingEmpty, or kBrokenPeer if it is invalid. Frees a skip.
ErrorCode RingReader::FindEntry(uint32_t* offset, uint32_t* length) {
  for (;;) {
    const uint32_t published = write_pos_ - read_pos_;
    if (published == 0) return ErrorCode::kRingEmpty;
    *offset = read_pos_ & (capacity_ - 1);
    // relaxed: ordered by ring.commit, in RefreshWritePos.
    *length = LengthAt(data_, *offset).load(std::memory_order_relaxed);
    const uint32_t bytes =
        RingEntryStride(*length, capacity_, capacity_ - *offset, published);
    if (bytes == 0) return ErrorCode::kBrokenPeer;
    if (*length != kRingSkip) return ErrorCode::kOk;
    Free(bytes);
  }
}

ErrorCode RingReader::TryRead(std::span<std::byte> buffer, size_t* bytes) {
  if (broken_) return ErrorCode::kBrokenPeer;
  uint32_t offset = 0;
  uint32_t length = 0;
  ErrorCode found = FindEntry(&offset, &length);
  if (found != ErrorCode::kOk) {
    if (!RefreshWritePos()) return Refuse(ErrorCode::kRingEmpty);
    found = FindEntry(&offset, &length);
    if (found == ErrorCode::kBrokenPeer) return Refuse(ErrorCode::kRingEmpty);
  }
  grace_.Clear();
  if (found != ErrorCode::kOk) return found;
  *bytes = length;
  if (length > buffer.size()) return ErrorCode::kInvalidArgument;
  if (length > 0) {
    std::memcpy(buffer.data(), data_ + offset + sizeof(uint32_t), length);
  }
  Free(RingEntryBytes(length));
  return ErrorCode::kOk;
}

ErrorCode RingReader::Read(std::span<std::byte> buffer, size_t* bytes,
                           Deadline deadline, Waiter& waiter,
                           WaitWatch& watch) {
  ErrorCode outcome = ErrorCode::kRingEmpty;
  const ErrorCode waited = waiter.Until(
      [&] {
        outcome = TryRead(buffer, bytes);
        return outcome != ErrorCode::kRingEmpty;
      },
      deadline, watch);
  return waited == ErrorCode::kOk ? outcome : waited;
}

}  // namespace tandem

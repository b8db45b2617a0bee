#include "transport/monitoring/ring_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/grace_period.h"
#include "base/os/machine.h"
#include "schema/layout/ring_header.h"
#include "transport/ring/ring.h"

namespace tandem {
namespace {

struct Positions {
  uint32_t write_pos = 0;
  uint32_t read_pos = 0;
};

bool ReadPositions(const ObservedFile& file, uint64_t offset,
                   Positions* positions) {
  RingHeader header;
  if (!file.Read(offset, &header, sizeof(header))) return false;
  // relaxed: words of a private copy.
  positions->write_pos = header.write_pos.load(std::memory_order_relaxed);
  positions->read_pos = header.read_pos.load(std::memory_order_relaxed);
  return true;
}

// Reads the lengths of a ring's entries, in larger pieces.
class Lengths {
 public:
  Lengths(const ObservedFile& file, uint64_t data_offset, uint32_t capacity)
      : file_(file), data_offset_(data_offset), capacity_(capacity) {}

  // Returns false if the file ends before the length.
  bool At(uint32_t offset, uint32_t* length) {
    if (offset < begin_ || offset + sizeof(*length) > end_) {
      begin_ = offset;
      end_ = std::min<uint32_t>(capacity_,
                                offset + static_cast<uint32_t>(piece_.size()));
      if (!file_.Read(data_offset_ + begin_, piece_.data(), end_ - begin_)) {
        end_ = begin_;
        return false;
      }
    }
    std::memcpy(length, piece_.data() + (offset - begin_), sizeof(*length));
    return true;
  }

 private:
  const ObservedFile& file_;
  uint64_t data_offset_;
  uint32_t capacity_;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  std::array<std::byte, 16'384> piece_;
};

// Walks the entries as RingReader::FindEntry does.
void CountMessages(Lengths lengths, const Positions& at, RingFill* fill) {
  uint32_t left = fill->used_bytes;
  uint32_t position = at.read_pos;
  uint32_t messages = 0;
  while (left > 0 && messages < RingFill::kMostCounted) {
    const uint32_t offset = position & (fill->capacity - 1);
    const uint32_t to_end = fill->capacity - offset;
    uint32_t length = 0;
    if (!lengths.At(offset, &length)) {
      fill->problem =
          absl::StrCat("the file ends before its entry at ", offset);
      return;
    }
    const uint32_t bytes =
        RingEntryStride(length, fill->capacity, to_end, left);
    if (bytes == 0) {
      const uint32_t room = std::min(to_end, left);
      fill->problem =
          length == kRingSkip
              ? absl::StrCat("an invalid skip at ", offset)
              : absl::StrCat("expected a message of at most ",
                             std::min(MaxRingMessageBytes(fill->capacity),
                                      room - uint32_t{sizeof(length)}),
                             " bytes at ", offset, ", found a length of ",
                             length);
      return;
    }
    if (length != kRingSkip) ++messages;
    position += bytes;
    left -= bytes;
  }
  fill->messages = messages;
}

// Reads the ring once. Returns true if the reader advanced during the read, so
// that overwritten entries may have been counted.
bool ReadOnce(const ObservedFile& file, uint64_t offset, RingFill* fill) {
  Positions at;
  if (!ReadPositions(file, offset, &at)) {
    fill->problem = "it lies outside the file";
    return false;
  }
  fill->used_bytes = at.write_pos - at.read_pos;
  if (fill->used_bytes > fill->capacity ||
      fill->used_bytes % kRingEntryAlignment != 0 ||
      at.read_pos % kRingEntryAlignment != 0) {
    fill->problem =
        absl::StrCat("expected positions, multiples of ", kRingEntryAlignment,
                     ", at most its size apart, found write_pos ", at.write_pos,
                     ", read_pos ", at.read_pos);
    fill->used_bytes = 0;
    return false;
  }
  CountMessages(Lengths(file, offset + sizeof(RingHeader), fill->capacity), at,
                fill);
  Positions after;
  return ReadPositions(file, offset, &after) && after.read_pos != at.read_pos;
}

}  // namespace

RingFill ReadRingFill(const ObservedFile& file, uint64_t offset,
                      uint32_t capacity) {
  RingFill none = {.capacity = capacity};
  if (!std::has_single_bit(capacity) || capacity < kMinRingBytes ||
      capacity > kMaxRingBytes) {
    none.problem =
        absl::StrCat("expected a power of two in ", kMinRingBytes, " .. ",
                     kMaxRingBytes, " as its size, found ", capacity);
    return none;
  }
  if (offset > file.bytes()) {
    none.problem = "it lies outside the file";
    return none;
  }
  constexpr int kMostReads = 8;
  GracePeriod grace(kRingGraceNs);
  for (int moved = 0;;) {
    RingFill fill = none;
    if (ReadOnce(file, offset, &fill)) {
      fill.messages.reset();
      fill.problem.clear();
      if (++moved == kMostReads) return fill;
      grace.Clear();
    } else if (fill.problem.empty() || grace.Expired()) {
      return fill;
    }
    YieldCore();
  }
}

}  // namespace tandem

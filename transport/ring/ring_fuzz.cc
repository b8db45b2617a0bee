// Fuzz target of the ring. The input is a script of calls and, for a lying
// peer, of overwritten words.
//
// Data flow: bytes -> calls on a ring and on a naive twin -> abort if they
// differ (honest peer), or if anything but the data was touched or an outcome
// is not among those promised (lying peer).
//
//   bazel run --config=fuzz //transport/ring:ring_fuzz -- -max_total_time=60
//
// ring_fuzz_test runs the same function over transport/ring/corpus and over
// random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"
#include "transport/ring/ring.h"
#include "transport/testing/fuzz_script.h"
#include "transport/wait/doorbell.h"

namespace tandem {
namespace {

// What a ring does, in positions that never wrap and messages kept whole.
class Twin {
 public:
  Twin(uint32_t capacity, uint32_t start)
      : capacity_(capacity), write_(start), read_(start) {}

  ErrorCode TryWrite(const std::vector<std::byte>& message) {
    const uint64_t entry = (4 + message.size() + 7) / 8 * 8;
    if (entry > capacity_ / 2) return ErrorCode::kMessageTooLarge;
    const uint64_t to_end = capacity_ - write_ % capacity_;
    const uint64_t begin = to_end < entry ? write_ + to_end : write_;
    if (begin + entry - read_ > capacity_) return ErrorCode::kRingFull;
    write_ = begin + entry;
    entries_.push_back({begin, write_, message});
    return ErrorCode::kOk;
  }
  ErrorCode TryRead(size_t room, std::vector<std::byte>* message) {
    if (entries_.empty()) return ErrorCode::kRingEmpty;
    read_ = entries_.front().begin;  // a skip is freed at sight
    if (entries_.front().message.size() > room) {
      return ErrorCode::kInvalidArgument;
    }
    *message = entries_.front().message;
    read_ = entries_.front().end;
    entries_.pop_front();
    return ErrorCode::kOk;
  }

 private:
  struct Entry {
    uint64_t begin, end;
    std::vector<std::byte> message;
  };
  uint64_t capacity_, write_, read_;
  std::deque<Entry> entries_;
};

// Header, data and bells, each in a heap block of its own for AddressSanitizer
// to guard.
struct Ring {
  Ring(uint32_t capacity_bytes, uint32_t start)
      : capacity(capacity_bytes),
        header(std::make_unique<RingHeader>()),
        data(std::make_unique<uint64_t[]>(capacity_bytes / 8)),
        bells(std::make_unique<SharedWord<uint32_t>[]>(4)) {
    // relaxed: there is one thread.
    header->write_pos.store(start, std::memory_order_relaxed);
    header->read_pos.store(start, std::memory_order_relaxed);
  }
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(data.get()), capacity};
  }
  RingWriter Writer() {
    return RingWriter::Attach(header.get(), bytes(),
                              Doorbell(&bells[0], &bells[1]), /*grace_ns=*/0)
        .value();
  }
  RingReader Reader() {
    return RingReader::Attach(header.get(), bytes(),
                              Doorbell(&bells[2], &bells[3]), /*grace_ns=*/0)
        .value();
  }

  uint32_t capacity;
  std::unique_ptr<RingHeader> header;
  std::unique_ptr<uint64_t[]> data;
  std::unique_ptr<SharedWord<uint32_t>[]> bells;
};

// A word as liars like it: near a position, near a power of two, or anything.
uint32_t Lie(Script& script, uint32_t truth) {
  switch (script.Byte() % 4) {
    case 0:
      return truth + static_cast<uint32_t>(static_cast<int8_t>(script.Byte()));
    case 1:
      return (1U << truth / 8 % 32) - script.Byte() % 16;
    case 2:
      return 0U - script.Byte();
    default:
      return script.Word();
  }
}

void Run(Script script) {
  const uint32_t capacity = kMinRingBytes << script.Byte() % 5;
  const bool lying = script.Byte() % 2 == 1;
  const uint32_t start = script.Byte() * 8U - 1024U;
  Ring ring(capacity, start);
  RingWriter writer = ring.Writer();
  RingReader reader = ring.Reader();
  Twin twin(capacity, start);
  bool writer_broken = false;
  bool reader_broken = false;
  uint8_t fill = 0;
  while (!script.AtEnd()) {
    const uint8_t choice =
        static_cast<uint8_t>(script.Byte() % (lying ? 8 : 5));
    if (choice <= 1) {
      const uint32_t size =
          script.Byte() * capacity / 2 / 250;  // a few are too large
      const std::vector<std::byte> message(size, std::byte{++fill});
      const ErrorCode code = writer.TryWrite(message);
      if (!lying) {
        Require(code == twin.TryWrite(message), "twin writes otherwise");
        continue;
      }
      Require(code == ErrorCode::kOk || code == ErrorCode::kRingFull ||
                  code == ErrorCode::kMessageTooLarge ||
                  code == ErrorCode::kBrokenPeer,
              "an outcome that TryWrite does not have");
      Require(!writer_broken || code == ErrorCode::kBrokenPeer,
              "a broken writer recovered");
      writer_broken = code == ErrorCode::kBrokenPeer;
    } else if (choice <= 4) {
      const size_t room =
          choice == 4 ? script.Byte() % 32 : reader.max_message_bytes();
      std::vector<std::byte> buffer(room);
      size_t bytes = 0;
      const ErrorCode code = reader.TryRead(buffer, &bytes);
      if (!lying) {
        std::vector<std::byte> expected;
        Require(code == twin.TryRead(room, &expected), "twin reads otherwise");
        buffer.resize(code == ErrorCode::kOk ? bytes : 0);
        Require(buffer == expected, "twin reads another message");
        continue;
      }
      Require(code == ErrorCode::kOk || code == ErrorCode::kRingEmpty ||
                  code == ErrorCode::kBrokenPeer ||
                  (code == ErrorCode::kInvalidArgument && choice == 4),
              "an outcome that TryRead does not have");
      Require(code != ErrorCode::kOk || bytes <= room, "too long a message");
      Require(!reader_broken || code == ErrorCode::kBrokenPeer,
              "a broken reader recovered");
      reader_broken = code == ErrorCode::kBrokenPeer;
    } else {
      SharedWord<uint32_t>& index =
          choice == 5 ? ring.header->write_pos : ring.header->read_pos;
      if (choice <= 6) {
        // relaxed: there is one thread.
        const uint32_t truth = index.load(std::memory_order_relaxed);
        index.store(Lie(script, truth), std::memory_order_relaxed);
      } else {
        const uint32_t at = script.Byte() * 8U % capacity;
        const uint32_t word = Lie(script, capacity / 2);
        std::memcpy(ring.bytes().data() + at, &word, sizeof(word));
      }
    }
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::Run(tandem::Script(data, std::min<size_t>(size, 4096)));
  return 0;
}

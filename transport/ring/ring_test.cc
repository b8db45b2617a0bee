#include "transport/ring/ring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "schema/goldens/samples.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/base/error.h"
#include "transport/ring/ring_test_region.h"

namespace tandem {
namespace {

using Bytes = std::vector<std::byte>;

// `size` bytes, different for each `seed`, none of them zero.
Bytes Message(size_t size, int seed = 1) {
  Bytes message(size);
  for (size_t i = 0; i < size; ++i) {
    message[i] =
        static_cast<std::byte>(1 + (i + 37 * static_cast<size_t>(seed)) % 255);
  }
  return message;
}

// The next message, or the outcome's name in brackets.
struct Received {
  ErrorCode code;
  Bytes message;
};

Received TryReadOne(RingReader& reader) {
  Bytes buffer(reader.max_message_bytes(), std::byte{0xEE});
  size_t bytes = 0;
  const ErrorCode code = reader.TryRead(buffer, &bytes);
  buffer.resize(code == ErrorCode::kOk ? bytes : 0);
  return {code, buffer};
}

void ExpectRead(RingReader& reader, const Bytes& expected) {
  const Received received = TryReadOne(reader);
  EXPECT_EQ(received.code, ErrorCode::kOk);
  EXPECT_EQ(received.message, expected);
}

// Brings both positions of an empty ring to `position` beyond the present.
void Advance(RingWriter& writer, RingReader& reader, uint32_t bytes) {
  for (; bytes >= 8; bytes -= 8) {
    ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
    ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  }
}

static_assert(!std::is_copy_constructible_v<RingWriter>);
static_assert(!std::is_copy_constructible_v<RingReader>);
static_assert(std::is_nothrow_move_constructible_v<RingWriter>);
static_assert(std::is_nothrow_move_assignable_v<RingReader>);
static_assert(!std::is_convertible_v<RingWriter, RingReader>);

TEST(RingAttach, RefusesDataThatCannotBe) {
  TestRegion region(128);
  for (const size_t bytes : {0, 8, 32, 63, 65, 96, 127}) {
    EXPECT_EQ(
        CodeOf(RingWriter::Attach(&region.header(), region.data().first(bytes),
                                  region.reader_bell())
                   .status()),
        ErrorCode::kInvalidArgument)
        << bytes;
  }
  EXPECT_EQ(
      CodeOf(RingReader::Attach(&region.header(), region.data().subspan(4, 64),
                                region.writer_bell())
                 .status()),
      ErrorCode::kInvalidArgument);
}

TEST(RingAttach, RefusesPositionsThatCannotBeAndResetMendsThem) {
  struct Case {
    uint32_t write_pos, read_pos;
  };
  for (const Case& c : std::vector<Case>{{72, 0},
                                         {4, 0},
                                         {12, 4},
                                         {0, 8},
                                         {0x80000000, 0},
                                         {8, 0xFFFFFFF9}}) {
    SCOPED_TRACE(testing::Message() << c.write_pos << " " << c.read_pos);
    TestRegion region(64);
    region.SetPositions(c.write_pos, c.read_pos);
    const auto reader = RingReader::Attach(&region.header(), region.data(),
                                           region.writer_bell());
    const auto writer = RingWriter::Attach(&region.header(), region.data(),
                                           region.reader_bell());
    EXPECT_EQ(CodeOf(reader.status()), ErrorCode::kBrokenPeer);
    EXPECT_EQ(CodeOf(writer.status()), ErrorCode::kBrokenPeer);
    ResetRing(&region.header());
    RingReader mended = region.Reader();
    EXPECT_EQ(TryReadOne(mended).code, ErrorCode::kRingEmpty);
  }
}

TEST(RingAttach, TakesUpTheRingWhereItStands) {
  TestRegion region(64);
  {
    RingWriter writer = region.Writer();
    RingReader reader = region.Reader();
    Advance(writer, reader, 40);
    ASSERT_EQ(writer.TryWrite(Message(3, 1)), ErrorCode::kOk);
    ASSERT_EQ(writer.TryWrite(Message(20, 2)), ErrorCode::kOk);
  }
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  EXPECT_EQ(writer.TryWrite(Message(28, 3)), ErrorCode::kRingFull);
  ExpectRead(reader, Message(3, 1));
  ExpectRead(reader, Message(20, 2));
  EXPECT_EQ(writer.TryWrite(Message(28, 3)), ErrorCode::kOk);
  ExpectRead(reader, Message(28, 3));
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
}

TEST(Ring, IsEmptyAtFirstAndAfterTheLastMessage) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  EXPECT_EQ(writer.TryWrite(Message(5)), ErrorCode::kOk);
  ExpectRead(reader, Message(5));
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
}

TEST(Ring, DeliversMessagesOfEveryLengthInOrder) {
  TestRegion region(512);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  for (uint32_t size = 0; size <= writer.max_message_bytes(); ++size) {
    ASSERT_EQ(writer.TryWrite(Message(size, static_cast<int>(size))),
              ErrorCode::kOk);
    ExpectRead(reader, Message(size, static_cast<int>(size)));
  }
  EXPECT_TRUE(region.CanariesLive());
}

TEST(Ring, AnEmptyMessageIsAMessage) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(1)), ErrorCode::kOk);
  size_t bytes = 77;
  EXPECT_EQ(reader.TryRead({}, &bytes), ErrorCode::kOk);  // needs no room
  EXPECT_EQ(bytes, 0U);
  EXPECT_EQ(region.read_pos(), 8U);
  ExpectRead(reader, Message(1));
}

TEST(Ring, WritesLengthMessageAndZeroPadding) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  std::fill(region.data().begin(), region.data().end(), std::byte{0xFF});
  for (const uint32_t size : {0U, 1U, 3U, 4U, 5U}) {
    const uint32_t start = region.write_pos();
    ASSERT_EQ(writer.TryWrite(Message(size)), ErrorCode::kOk);
    const uint32_t end = region.write_pos();
    EXPECT_EQ(end - start, size <= 4 ? 8U : 16U);
    EXPECT_EQ(region.WordAt(start), size);
    for (uint32_t at = start + 4 + size; at < end; ++at) {
      EXPECT_EQ(region.data()[at], std::byte{0}) << size << " " << at;
    }
  }
}

TEST(Ring, RefusesAMessageLargerThanHalfTheRing) {
  for (const uint32_t capacity : {64U, 128U, 4096U}) {
    TestRegion region(capacity);
    RingWriter writer = region.Writer();
    RingReader reader = region.Reader();
    const uint32_t largest = capacity / 2 - 4;
    EXPECT_EQ(writer.max_message_bytes(), largest);
    EXPECT_EQ(writer.TryWrite(Message(largest + 1)),
              ErrorCode::kMessageTooLarge);
    EXPECT_EQ(writer.TryWrite(Message(2 * capacity)),
              ErrorCode::kMessageTooLarge);
    EXPECT_EQ(region.write_pos(), 0U);
    EXPECT_EQ(writer.TryWrite(Message(largest)), ErrorCode::kOk);
    ExpectRead(reader, Message(largest));
  }
}

TEST(Ring, RefusesALengthThatWrapsIn32Bits) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  const std::byte byte{};
  EXPECT_EQ(writer.TryWrite({&byte, size_t{0xFFFFFFFF}}),
            ErrorCode::kMessageTooLarge);
  EXPECT_EQ(writer.TryWrite({&byte, size_t{0x100000001}}),
            ErrorCode::kMessageTooLarge);
  EXPECT_EQ(region.write_pos(), 0U);
}

TEST(Ring, CanBeExactlyFull) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28, 2)), ErrorCode::kOk);
  EXPECT_EQ(region.write_pos() - region.read_pos(), 64U);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  ExpectRead(reader, Message(28, 1));
  EXPECT_EQ(writer.TryWrite(Message(28, 3)), ErrorCode::kOk);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  ExpectRead(reader, Message(28, 2));
  ExpectRead(reader, Message(28, 3));
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
}

TEST(Ring, WithRoomForTheEntryButNotForTheSkipIsFull) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  Advance(writer, reader, 48);
  ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);  // 48..56; 8 left before end
  // 56 bytes are free: 8 skipped and 32 at the start fit once...
  ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
  // ... and leave 16 of 24 wanted.
  EXPECT_EQ(writer.TryWrite(Message(20, 2)), ErrorCode::kRingFull);
  ExpectRead(reader, {});
  EXPECT_EQ(writer.TryWrite(Message(20, 2)), ErrorCode::kOk);
  ExpectRead(reader, Message(28, 1));
  ExpectRead(reader, Message(20, 2));
}

// Every start within the ring, every length: at each the entry ends before the
// end, at it, or must go to the start.
TEST(Ring, WrapsAtEveryPlaceWithEveryLength) {
  constexpr uint32_t kCapacity = 128;
  for (uint32_t start = 0; start < kCapacity; start += 8) {
    for (uint32_t size = 0; size <= MaxRingMessageBytes(kCapacity); ++size) {
      SCOPED_TRACE(testing::Message() << start << " " << size);
      TestRegion region(kCapacity, start);
      RingWriter writer = region.Writer();
      RingReader reader = region.Reader();
      ASSERT_EQ(writer.TryWrite(Message(size, 1)), ErrorCode::kOk);
      const uint32_t entry = (4 + size + 7) / 8 * 8;
      const bool skipped = kCapacity - start < entry;
      EXPECT_EQ(region.write_pos(),
                start + entry + (skipped ? kCapacity - start : 0));
      EXPECT_EQ(region.WordAt(start), skipped ? kRingSkip : size);
      EXPECT_EQ(region.WordAt(skipped ? 0 : start), size);
      ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
      ExpectRead(reader, Message(size, 1));
      ExpectRead(reader, {});
      EXPECT_EQ(region.read_pos(), region.write_pos());
      EXPECT_TRUE(region.CanariesLive());
    }
  }
}

TEST(Ring, PositionsWrapModulo32Bits) {
  for (uint32_t before = 8; before <= 128; before += 8) {
    SCOPED_TRACE(before);
    TestRegion region(64, 0U - before);
    RingWriter writer = region.Writer();
    RingReader reader = region.Reader();
    for (int i = 0; i < 20; ++i) {
      const size_t size = static_cast<size_t>(i * 7 % 29);
      ASSERT_EQ(writer.TryWrite(Message(size, i)), ErrorCode::kOk);
      ExpectRead(reader, Message(size, i));
    }
    EXPECT_LT(region.write_pos(), 0x80000000);
    EXPECT_EQ(region.read_pos(), region.write_pos());
  }
}

TEST(Ring, FullAcrossTheWrapOfPositionsIsFull) {
  TestRegion region(64, 0U - 32);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28, 2)), ErrorCode::kOk);
  EXPECT_EQ(region.write_pos(), 32U);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  ExpectRead(reader, Message(28, 1));
  EXPECT_EQ(region.read_pos(), 0U);
  ExpectRead(reader, Message(28, 2));
}

TEST(Ring, LeavesAMessageThatTheBufferCannotHold) {
  TestRegion region(64, 56);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(10)), ErrorCode::kOk);  // behind a skip
  Bytes small(9, std::byte{0xEE});
  size_t bytes = 0;
  EXPECT_EQ(reader.TryRead(small, &bytes), ErrorCode::kInvalidArgument);
  EXPECT_EQ(bytes, 10U);
  EXPECT_EQ(small, Bytes(9, std::byte{0xEE}));
  ExpectRead(reader, Message(10));
}

TEST(Ring, RingsTheReaderWhenWrittenAndTheWriterWhenFreed) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  const auto looks = [](Doorbell bell, auto act) {
    // A sleeper's own look is where the peer acts: only a ring can end its
    // sleep, or keep it from sleeping.
    bool acted = false;
    return !bell.SleepUnless(
        [&] {
          if (!acted) act();
          acted = true;
          return false;
        },
        60'000'000'000);
  };
  alarm(30);
  EXPECT_TRUE(looks(region.reader_bell(), [&] {
    EXPECT_EQ(writer.TryWrite(Message(1)), ErrorCode::kOk);
  }));
  EXPECT_TRUE(looks(region.writer_bell(), [&] {
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  }));
  alarm(0);
}

// The golden is made without this code, by hand.
TEST(Ring, ProducesAndReadsTheGolden) {
  std::ifstream file("schema/goldens/ring_v1.bin", std::ios::binary);
  const std::string golden(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(golden.size(), sizeof(RingHeader) + kSampleRingBytes);
  Bytes first(27);
  std::iota(reinterpret_cast<uint8_t*>(first.data()),
            reinterpret_cast<uint8_t*>(first.data() + first.size()), 1);
  Bytes third(44);
  std::iota(reinterpret_cast<uint8_t*>(third.data()),
            reinterpret_cast<uint8_t*>(third.data() + third.size()), 101);

  TestRegion written(kSampleRingBytes, kSampleReadPos);
  RingWriter writer = written.Writer();
  ASSERT_EQ(writer.TryWrite(first), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(third), ErrorCode::kOk);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  EXPECT_EQ(std::memcmp(&written.header(), golden.data(), sizeof(RingHeader)),
            0);
  EXPECT_EQ(std::memcmp(written.data().data(), &golden[sizeof(RingHeader)],
                        kSampleRingBytes),
            0);

  TestRegion read(kSampleRingBytes);
  std::memcpy(static_cast<void*>(&read.header()), golden.data(),
              sizeof(RingHeader));
  std::memcpy(read.data().data(), &golden[sizeof(RingHeader)],
              kSampleRingBytes);
  RingReader reader = read.Reader();
  ExpectRead(reader, first);
  ExpectRead(reader, {});
  ExpectRead(reader, third);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
}

// --- A peer that lies -------------------------------------------------------

constexpr uint32_t kGarbage[] = {1,          4,          7,          12,
                                 60,         65,         68,         72,
                                 128,        0x7FFFFFF8, 0x80000000, 0xDEADBEE8,
                                 0xFFFFFFF7, 0xFFFFFFF8, 0xFFFFFFFF};

TEST(RingWithALyingReader, BreaksForGoodOnAnyReadPosThatCannotBe) {
  // The ring was read to 16 and holds 16..48 of 64.
  for (const uint32_t garbage : kGarbage) {
    SCOPED_TRACE(garbage);
    TestRegion region(64);
    RingWriter writer = region.Writer();
    RingReader reader = region.Reader();
    Advance(writer, reader, 16);
    ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
    ASSERT_EQ(writer.TryWrite(Message(4, 2)), ErrorCode::kOk);
    ASSERT_EQ(writer.TryWrite(Message(20, 3)), ErrorCode::kRingFull);
    const Bytes before(region.data().begin(), region.data().end());
    region.header().read_pos.store(garbage, std::memory_order_release);
    EXPECT_EQ(writer.TryWrite(Message(20)), ErrorCode::kBrokenPeer);
    EXPECT_EQ(Bytes(region.data().begin(), region.data().end()), before);
    EXPECT_EQ(region.write_pos(), 56U);
    // Sticky, though the index is good again.
    region.header().read_pos.store(56, std::memory_order_release);
    EXPECT_EQ(writer.TryWrite({}), ErrorCode::kBrokenPeer);
    // A new start mends it.
    RingWriter again = region.Writer();
    EXPECT_EQ(again.TryWrite({}), ErrorCode::kOk);
  }
}

TEST(RingWithALyingReader, NeverTakesBackRoomThatWasGiven) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(20)), ErrorCode::kOk);  // saw 32
  region.header().read_pos.store(24, std::memory_order_release);
  EXPECT_EQ(writer.TryWrite(Message(20)), ErrorCode::kBrokenPeer);
}

TEST(RingWithALyingReader, GoesByItsOwnPosition) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(4, 1)), ErrorCode::kOk);
  region.header().write_pos.store(0xDEADBEEF, std::memory_order_release);
  ASSERT_EQ(writer.TryWrite(Message(4, 2)), ErrorCode::kOk);
  EXPECT_EQ(region.write_pos(), 16U);
  region.header().read_pos.store(0xDEADBEEF, std::memory_order_release);
  ExpectRead(reader, Message(4, 1));
  ExpectRead(reader, Message(4, 2));
  EXPECT_EQ(region.read_pos(), 16U);
}

TEST(RingWithALyingWriter, BreaksForGoodOnAnyWritePosThatCannotBe) {
  for (const uint32_t garbage : kGarbage) {
    SCOPED_TRACE(garbage);
    TestRegion region(64);
    RingReader reader = region.Reader();
    region.header().write_pos.store(garbage, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
    region.header().write_pos.store(0, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
    RingReader again = region.Reader();
    EXPECT_EQ(TryReadOne(again).code, ErrorCode::kRingEmpty);
  }
}

TEST(RingWithALyingWriter, BreaksWhenWritePosGoesBack) {
  TestRegion region(64);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  ASSERT_EQ(writer.TryWrite(Message(4)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(20)), ErrorCode::kOk);
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);  // saw 32
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  region.header().write_pos.store(24, std::memory_order_release);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
}

// At each place of a full ring, each length that is not inside what is
// published, not inside the data, or larger than half of it.
TEST(RingWithALyingWriter, BreaksOnAnyLengthThatCannotBe) {
  constexpr uint32_t kCapacity = 128;
  for (uint32_t start = 0; start < kCapacity; start += 8) {
    for (uint32_t published = 8; published <= kCapacity; published += 8) {
      const uint32_t to_end = kCapacity - start;
      const uint32_t room = std::min({published, to_end, kCapacity / 2});
      const bool may_skip = to_end < kCapacity / 2 && to_end <= published;
      for (const uint32_t length :
           {room - 3, room + 1, room + 4, kCapacity - 4, kCapacity, 0x7FFFFFFFU,
            0x80000000U, 0xFFFFFFF0U, 0xFFFFFFFBU, 0xFFFFFFFCU, 0xFFFFFFFEU,
            kRingSkip}) {
        if (length == kRingSkip && may_skip) continue;
        SCOPED_TRACE(testing::Message()
                     << start << " " << published << " " << length);
        TestRegion region(kCapacity, start);
        RingReader reader = region.Reader();
        region.SetWordAt(start, length);
        region.SetPositions(start + published, start);
        EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
        EXPECT_EQ(region.read_pos(), start);
        EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
        EXPECT_TRUE(region.CanariesLive());
      }
    }
  }
}

TEST(RingWithALyingWriter, ReadsTheLongestLengthThatCanBe) {
  constexpr uint32_t kCapacity = 128;
  for (uint32_t start = 0; start < kCapacity; start += 8) {
    for (uint32_t published = 8; published <= kCapacity; published += 8) {
      SCOPED_TRACE(testing::Message() << start << " " << published);
      const uint32_t room =
          std::min({published, kCapacity - start, kCapacity / 2});
      TestRegion region(kCapacity, start);
      RingReader reader = region.Reader();
      region.SetWordAt(start, room - 4);
      region.SetPositions(start + published, start);
      EXPECT_EQ(TryReadOne(reader).message.size(), room - 4);
      EXPECT_EQ(region.read_pos(), start + room);
    }
  }
}

TEST(RingWithALyingWriter, BreaksOnASkipThatFollowsASkip) {
  TestRegion region(64, 56);
  RingReader reader = region.Reader();
  region.SetWordAt(56, kRingSkip);
  region.SetWordAt(0, kRingSkip);
  region.SetPositions(56 + 64, 56);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
}

TEST(RingWithAForeignWriter, TakesASkipThatIsPublishedAlone) {
  TestRegion region(64, 56);
  RingReader reader = region.Reader();
  region.SetWordAt(56, kRingSkip);
  region.SetPositions(64, 56);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  EXPECT_EQ(region.read_pos(), 64U);
  region.SetWordAt(0, 0);
  region.SetPositions(72, 64);
  ExpectRead(reader, {});
}

}  // namespace
}  // namespace tandem

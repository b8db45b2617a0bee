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

#include "base/error.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/ring/testing/ring_test_messages.h"
#include "transport/ring/testing/ring_test_region.h"

namespace tandem {
namespace {

static_assert(!std::is_copy_constructible_v<RingWriter>);
static_assert(!std::is_copy_constructible_v<RingReader>);
static_assert(std::is_nothrow_move_constructible_v<RingWriter>);
static_assert(std::is_nothrow_move_assignable_v<RingReader>);
static_assert(!std::is_convertible_v<RingWriter, RingReader>);

TEST(RingAttach, RefusesInvalidData) {
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

TEST(RingAttach, RefusesInvalidPositionsAndResetRepairsThem) {
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
    RingReader reset = region.Reader();
    EXPECT_EQ(TryReadOne(reset).code, ErrorCode::kRingEmpty);
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
  auto [region, writer, reader] = RingEnds(64);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  EXPECT_EQ(writer.TryWrite(Message(5)), ErrorCode::kOk);
  ExpectRead(reader, Message(5));
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
}

TEST(Ring, DeliversMessagesOfEveryLengthInOrder) {
  auto [region, writer, reader] = RingEnds(512);
  for (uint32_t size = 0; size <= writer.max_message_bytes(); ++size) {
    ASSERT_EQ(writer.TryWrite(Message(size, static_cast<int>(size))),
              ErrorCode::kOk);
    ExpectRead(reader, Message(size, static_cast<int>(size)));
  }
  EXPECT_TRUE(region.CanariesLive());
}

TEST(Ring, AnEmptyMessageIsAMessage) {
  auto [region, writer, reader] = RingEnds(64);
  ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(1)), ErrorCode::kOk);
  size_t bytes = 77;
  EXPECT_EQ(reader.TryRead({}, &bytes), ErrorCode::kOk);  // It needs no room.
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
    auto [region, writer, reader] = RingEnds(capacity);
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
  auto [region, writer, reader] = RingEnds(64);
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
  auto [region, writer, reader] = RingEnds(64);
  Advance(writer, reader, 48);
  ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);  // 48..56; 8 left before end
  // 56 bytes are free: a skip of 8 and 32 at the start fit once...
  ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
  // ... and leave 16 bytes; the entry needs 24.
  EXPECT_EQ(writer.TryWrite(Message(20, 2)), ErrorCode::kRingFull);
  ExpectRead(reader, {});
  EXPECT_EQ(writer.TryWrite(Message(20, 2)), ErrorCode::kOk);
  ExpectRead(reader, Message(28, 1));
  ExpectRead(reader, Message(20, 2));
}

// Every start within the ring, every length. The entry ends before the end, at
// the end, or must continue at the start.
TEST(Ring, WrapsAtEveryPlaceWithEveryLength) {
  constexpr uint32_t kCapacity = 128;
  for (uint32_t start = 0; start < kCapacity; start += 8) {
    for (uint32_t size = 0; size <= MaxRingMessageBytes(kCapacity); ++size) {
      SCOPED_TRACE(testing::Message() << start << " " << size);
      auto [region, writer, reader] = RingEnds(kCapacity, start);
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
    auto [region, writer, reader] = RingEnds(64, 0U - before);
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
  auto [region, writer, reader] = RingEnds(64, 0U - 32);
  ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28, 2)), ErrorCode::kOk);
  EXPECT_EQ(region.write_pos(), 32U);
  EXPECT_EQ(writer.TryWrite({}), ErrorCode::kRingFull);
  ExpectRead(reader, Message(28, 1));
  EXPECT_EQ(region.read_pos(), 0U);
  ExpectRead(reader, Message(28, 2));
}

TEST(Ring, LeavesAMessageThatTheBufferCannotHold) {
  auto [region, writer, reader] = RingEnds(64, 56);
  ASSERT_EQ(writer.TryWrite(Message(10)), ErrorCode::kOk);  // After a skip.
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
    // The peer acts in the sleeper's last poll: only a notification can end
    // its sleep or prevent it.
    bool acted = false;
    return bell.SleepUnless(
               [&] {
                 if (!acted) act();
                 acted = true;
                 return false;
               },
               60'000'000'000) == Doorbell::Wake::kNotified;
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

// The golden was made by hand, without this code.
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

}  // namespace
}  // namespace tandem

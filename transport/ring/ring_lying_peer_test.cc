// The ring with a peer that writes invalid values into each word that it can
// write to.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/ring/ring.h"
#include "transport/ring/testing/ring_test_messages.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kGarbage[] = {1,          4,          7,          12,
                                 60,         65,         68,         72,
                                 128,        0x7FFFFFF8, 0x80000000, 0xDEADBEE8,
                                 0xFFFFFFF7, 0xFFFFFFF8, 0xFFFFFFFF};

TEST(RingWithALyingReader, StaysBrokenAfterAnyInvalidReadPos) {
  // The ring was read to 16 and holds 16..48 of 64.
  for (const uint32_t garbage : kGarbage) {
    SCOPED_TRACE(garbage);
    auto [region, writer, reader] = RingEnds(64);
    Advance(writer, reader, 16);
    ASSERT_EQ(writer.TryWrite(Message(28, 1)), ErrorCode::kOk);
    ASSERT_EQ(writer.TryWrite(Message(4, 2)), ErrorCode::kOk);
    ASSERT_EQ(writer.TryWrite(Message(20, 3)), ErrorCode::kRingFull);
    const Bytes before(region.data().begin(), region.data().end());
    region.header().read_pos.store(garbage, std::memory_order_release);
    EXPECT_EQ(writer.TryWrite(Message(20)), ErrorCode::kBrokenPeer);
    EXPECT_EQ(Bytes(region.data().begin(), region.data().end()), before);
    EXPECT_EQ(region.write_pos(), 56U);
    // The error persists, though the index is valid again.
    region.header().read_pos.store(56, std::memory_order_release);
    EXPECT_EQ(writer.TryWrite({}), ErrorCode::kBrokenPeer);
    // A reset repairs it.
    RingWriter again = region.Writer();
    EXPECT_EQ(again.TryWrite({}), ErrorCode::kOk);
  }
}

TEST(RingWithALyingReader, NeverTakesBackRoomThatWasGiven) {
  auto [region, writer, reader] = RingEnds(64);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(20)), ErrorCode::kOk);  // It loads 32.
  region.header().read_pos.store(24, std::memory_order_release);
  EXPECT_EQ(writer.TryWrite(Message(20)), ErrorCode::kBrokenPeer);
}

TEST(RingWithALyingReader, GoesByItsOwnPosition) {
  auto [region, writer, reader] = RingEnds(64);
  ASSERT_EQ(writer.TryWrite(Message(4, 1)), ErrorCode::kOk);
  region.header().write_pos.store(0xDEADBEEF, std::memory_order_release);
  ASSERT_EQ(writer.TryWrite(Message(4, 2)), ErrorCode::kOk);
  EXPECT_EQ(region.write_pos(), 16U);
  region.header().read_pos.store(0xDEADBEEF, std::memory_order_release);
  ExpectRead(reader, Message(4, 1));
  ExpectRead(reader, Message(4, 2));
  EXPECT_EQ(region.read_pos(), 16U);
}

TEST(RingWithALyingWriter, StaysBrokenAfterAnyInvalidWritePos) {
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
  auto [region, writer, reader] = RingEnds(64);
  ASSERT_EQ(writer.TryWrite(Message(4)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(20)), ErrorCode::kOk);
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);  // It loads 32.
  ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  region.header().write_pos.store(24, std::memory_order_release);
  EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kBrokenPeer);
}

// At each position of a full ring: each length that exceeds the published
// bytes, the data, or half of the data.
TEST(RingWithALyingWriter, BreaksOnAnyInvalidLength) {
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

// Python's struct.pack_into clears a word before it stores it byte by byte.
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

TEST(RingWithAForeignWriter, WaitsForHalfStoredWritePos) {
  auto [region, writer, reader] = RingEnds(64, 0x120, kForever);
  ASSERT_EQ(writer.TryWrite(Message(3)), ErrorCode::kOk);
  for (const uint32_t half_stored : {0U, 0x28U}) {
    region.header().write_pos.store(half_stored, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  }
  region.header().write_pos.store(0x128, std::memory_order_release);
  ExpectRead(reader, Message(3));
}

TEST(RingWithAForeignWriter, WaitsForTheRestOfAnEntryHalfPublished) {
  auto [region, writer, reader] = RingEnds(256, 0xF0, kForever);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);  // Skips to 0x100.
  ASSERT_EQ(region.write_pos(), 0x120U);
  for (const uint32_t half_stored : {0U, 0x20U, 0x100U, 0x108U}) {
    region.header().write_pos.store(half_stored, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  }
  region.header().write_pos.store(0x120, std::memory_order_release);
  ExpectRead(reader, Message(28));
}

TEST(RingWithAForeignReader, WaitsForHalfStoredReadPos) {
  TestRegion region(64, 0x120);
  RingWriter writer = region.Writer(kForever);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  for (const uint32_t half_stored : {0U, 0x40U}) {
    region.header().read_pos.store(half_stored, std::memory_order_release);
    EXPECT_EQ(writer.TryWrite(Message(28)), ErrorCode::kRingFull);
  }
  region.header().read_pos.store(0x140, std::memory_order_release);
  EXPECT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
}

TEST(RingWithALyingPeer, BreaksAfterTheGracePeriod) {
  alarm(60);
  TestRegion region(64);
  RingReader reader = region.Reader(1'000'000);
  RingWriter writer = region.Writer(1'000'000);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  region.SetPositions(4, 4);
  const int64_t start = MonotonicNanos();
  ErrorCode code = ErrorCode::kRingEmpty;
  while (code == ErrorCode::kRingEmpty) code = TryReadOne(reader).code;
  EXPECT_EQ(code, ErrorCode::kBrokenPeer);
  EXPECT_GE(MonotonicNanos() - start, 1'000'000);
  code = ErrorCode::kRingFull;
  while (code == ErrorCode::kRingFull) code = writer.TryWrite({});
  EXPECT_EQ(code, ErrorCode::kBrokenPeer);
  alarm(0);
}

TEST(RingWithALyingPeer, ClearedGracePeriodStartsAgain) {
  TestRegion region(64);
  RingReader reader = region.Reader(60'000'000'000);
  for (int i = 0; i < 3; ++i) {
    region.header().write_pos.store(4, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
    region.header().write_pos.store(0, std::memory_order_release);
    EXPECT_EQ(TryReadOne(reader).code, ErrorCode::kRingEmpty);
  }
}

TEST(RingWithALyingPeer, EndsTheWaitsOfTheBlockingForms) {
  class NoWatch : public WaitWatch {
    ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
  } watch;
  alarm(60);
  TestRegion region(64);
  RingReader reader = region.Reader(1'000'000);
  RingWriter writer = region.Writer(1'000'000);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  ASSERT_EQ(writer.TryWrite(Message(28)), ErrorCode::kOk);
  region.SetPositions(4, 4);
  Waiter reading(region.reader_bell(), WaitStrategy::kBlock);
  Waiter writing(region.writer_bell(), WaitStrategy::kAdaptive);
  std::vector<std::byte> buffer(reader.max_message_bytes());
  size_t bytes = 0;
  EXPECT_EQ(reader.Read(buffer, &bytes, Deadline::Infinite(), reading, watch),
            ErrorCode::kBrokenPeer);
  EXPECT_EQ(writer.Write({}, Deadline::Infinite(), writing, watch),
            ErrorCode::kBrokenPeer);
  alarm(0);
}

}  // namespace
}  // namespace tandem

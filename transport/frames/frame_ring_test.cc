// Writer and reader of a FLAN ring, alternately on one thread.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "schema/goldens/testing/samples.h"
#include "schema/layout/flan.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/frames/frame_slot.h"
#include "transport/frames/testing/frame_test_ring.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

constexpr FrameGeometry kSmall = {
    .width = 5, .height = 3, .capacity = 4, .metadata_bytes = 32};

uint64_t PublishNext(FrameWriter& writer) {
  const uint64_t number = writer.head() + 1;
  const double value = static_cast<double>(number);
  return writer.Publish(MakeFrame(number, writer.geometry().FrameBytes()),
                        {.last_reward = value,
                         .rolling_return = 2 * value,
                         .step_rate_hz = 3 * value},
                        FrameText(number));
}

void ExpectFrame(const Frame& frame, uint64_t number) {
  EXPECT_EQ(frame.number, number);
  EXPECT_TRUE(IsFrame(number, frame.pixels));
  EXPECT_EQ(frame.frame_len, frame.pixels.size());
  EXPECT_EQ(frame.metadata, FrameText(number));
}

class SmallFrameRing : public testing::Test {
 protected:
  FrameTestRing ring_{kSmall};
  FrameWriter writer_ = ring_.Writer();
  FrameReader reader_ = ring_.Reader();
  Frame frame_;
};

TEST(FrameRing, NewRingIsAttachableAndEmpty) {
  FrameTestRing ring(kSmall);
  (void)ring.Writer();
  FrameReader reader = ring.Reader();
  EXPECT_EQ(reader.geometry(), kSmall);
  Frame frame;
  EXPECT_EQ(reader.Newest(&frame), Found::kNothing);
  EXPECT_EQ(reader.Next(&frame), Found::kNothing);
  EXPECT_EQ(reader.Head(), 0u);
  EXPECT_EQ(reader.Metrics(), FrameMetrics());
  EXPECT_FALSE(reader.Invalidated());
}

TEST(FrameRing, DeliversPublishedFrames) {
  for (const uint32_t channels : {3u, 4u}) {
    for (const uint32_t capacity : {1u, 2u, 3u, 8u, 128u}) {
      FrameGeometry geometry = kSmall;
      geometry.channels = channels;
      geometry.capacity = capacity;
      FrameTestRing ring(geometry);
      FrameWriter writer = ring.Writer();
      FrameReader reader = ring.Reader();
      Frame frame;
      for (uint64_t number = 1; number <= 3 * capacity; ++number) {
        ASSERT_EQ(PublishNext(writer), number);
        ASSERT_EQ(reader.Next(&frame), Found::kFrame);
        ExpectFrame(frame, number);
        EXPECT_EQ(frame.width, 5u);
        EXPECT_EQ(frame.height, 3u);
        EXPECT_EQ(frame.channels, channels);
        EXPECT_EQ(frame.metrics.last_reward, static_cast<double>(number));
        EXPECT_EQ(reader.Metrics(), frame.metrics);
      }
      EXPECT_EQ(reader.dropped(), 0u);
    }
  }
}

TEST_F(SmallFrameRing, NewestRepeatsAndNextDeliversEachOnce) {
  PublishNext(writer_);
  PublishNext(writer_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
    ExpectFrame(frame_, 2);
  }
  ASSERT_EQ(reader_.Next(&frame_), Found::kFrame);
  ExpectFrame(frame_, 2);
  EXPECT_EQ(reader_.Next(&frame_), Found::kNothing);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  ExpectFrame(frame_, 2);
}

TEST_F(SmallFrameRing, CountsFramesSkippedBetweenDeliveries) {
  for (int i = 0; i < 5; ++i) PublishNext(writer_);
  ASSERT_EQ(reader_.Next(&frame_), Found::kFrame);
  EXPECT_EQ(reader_.dropped(), 0u);  // No reader was attached.
  for (int i = 0; i < 7; ++i) PublishNext(writer_);
  ASSERT_EQ(reader_.Next(&frame_), Found::kFrame);
  ExpectFrame(frame_, 12);
  EXPECT_EQ(reader_.dropped(), 6u);
}

TEST(FrameRing, ReservedSlotIsInvisibleUntilCommitted) {
  for (const uint32_t capacity : {1u, 2u, 4u}) {
    FrameGeometry geometry = kSmall;
    geometry.capacity = capacity;
    FrameTestRing ring(geometry);
    FrameWriter writer = ring.Writer();
    FrameReader reader = ring.Reader();
    Frame frame;
    EXPECT_EQ(writer.Commit({}, ""), 0u);  // No slot is reserved.
    for (uint64_t number = 1; number <= 9; ++number) {
      const std::span<std::byte> slot = writer.Reserve();
      ASSERT_EQ(slot.size(), geometry.FrameBytes());
      FillFrame(number, slot);
      EXPECT_EQ(writer.Reserve().data(), slot.data());
      EXPECT_EQ(reader.Next(&frame), Found::kNothing);
      ASSERT_EQ(writer.Commit({}, FrameText(number)), number);
      ASSERT_EQ(reader.Next(&frame), Found::kFrame);
      ExpectFrame(frame, number);
    }
  }
}

TEST(FrameRing, AFrameThatIsBeingOverwrittenIsNotDelivered) {
  FrameGeometry geometry = kSmall;
  geometry.capacity = 1;
  FrameTestRing ring(geometry);
  FrameWriter writer = ring.Writer();
  FrameReader reader = ring.Reader();
  PublishNext(writer);
  writer.Reserve();
  Frame frame;
  EXPECT_EQ(reader.Newest(&frame), Found::kNothing);
}

TEST(FrameRing, AnEarlierFrameStaysReadableWhileTheNextIsWritten) {
  FrameGeometry geometry = kSmall;
  geometry.capacity = 2;
  FrameTestRing ring(geometry);
  FrameWriter writer = ring.Writer();
  FrameReader reader = ring.Reader();
  PublishNext(writer);
  FillFrame(99, writer.Reserve());
  Frame frame;
  ASSERT_EQ(reader.Newest(&frame), Found::kFrame);
  ExpectFrame(frame, 1);
}

TEST_F(SmallFrameRing, AShortFrameKeepsItsLengthAndIsPaddedWithZeroes) {
  PublishNext(writer_);
  const std::vector<std::byte> shorter(7, std::byte{9});
  ASSERT_EQ(writer_.Publish(shorter, {}, "behind it"), 2u);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  EXPECT_EQ(frame_.frame_len, 7u);
  ASSERT_EQ(frame_.pixels.size(), kSmall.FrameBytes());
  for (size_t at = 0; at < frame_.pixels.size(); ++at) {
    EXPECT_EQ(frame_.pixels[at], at < 7 ? std::byte{9} : std::byte{0});
  }
  EXPECT_EQ(frame_.metadata, "behind it");
}

TEST_F(SmallFrameRing, TooLongAFrameIsRefusedAndTooMuchMetadataCutOff) {
  const std::vector<std::byte> longer(kSmall.FrameBytes() + 1);
  EXPECT_EQ(writer_.Publish(longer, {}, ""), 0u);
  EXPECT_EQ(reader_.Head(), 0u);
  const std::string text(100, 'x');
  ASSERT_EQ(writer_.Publish({}, {}, text), 1u);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  EXPECT_EQ(frame_.frame_len, 0u);
  EXPECT_EQ(frame_.metadata, text.substr(0, kSmall.metadata_bytes));
}

TEST_F(SmallFrameRing, AfterTheWritersEndTheLastFrameIsDeliveredOnceByNext) {
  PublishNext(writer_);
  writer_.Invalidate();
  EXPECT_TRUE(reader_.Invalidated());
  ASSERT_EQ(reader_.Next(&frame_), Found::kFrame);
  ExpectFrame(frame_, 1);
  EXPECT_EQ(reader_.Next(&frame_), Found::kInvalidated);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  ExpectFrame(frame_, 1);
}

TEST_F(SmallFrameRing, HeadThatIsZeroForAnInstantIsIgnored) {
  for (int i = 0; i < 6; ++i) PublishNext(writer_);
  ASSERT_EQ(reader_.Next(&frame_), Found::kFrame);
  for (const uint64_t torn : {0u, 4u}) {
    ring_.header()->head.store(torn, std::memory_order_relaxed);
    EXPECT_EQ(reader_.Newest(&frame_), Found::kNothing);
    EXPECT_EQ(reader_.Next(&frame_), Found::kNothing);
  }
  ring_.header()->head.store(6, std::memory_order_relaxed);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  ExpectFrame(frame_, 6);
  EXPECT_EQ(reader_.Next(&frame_), Found::kNothing);
}

TEST(FrameRing, FollowsWriterThatRestartsInPlace) {
  FrameTestRing ring(kSmall);
  FrameWriter writer = ring.Writer();
  FrameReader reader = ring.Reader(/*grace_ns=*/0);
  for (int i = 0; i < 6; ++i) PublishNext(writer);
  Frame frame;
  ASSERT_EQ(reader.Next(&frame), Found::kFrame);
  FrameWriter second = ring.Writer();
  PublishNext(second);
  ASSERT_EQ(reader.Next(&frame), Found::kFrame);
  ExpectFrame(frame, 1);
  EXPECT_EQ(reader.dropped(), 0u);
}

TEST_F(SmallFrameRing, HeaderIsBrokenOnlyIfItStaysInvalid) {
  FrameReader impatient = ring_.Reader(/*grace_ns=*/0);
  PublishNext(writer_);
  const FlanHeader good = *ring_.header();
  ring_.header()->width = 1;
  EXPECT_EQ(reader_.Newest(&frame_), Found::kNothing);
  EXPECT_EQ(impatient.Newest(&frame_), Found::kBroken);
  ring_.header()->width = good.width;
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  ASSERT_EQ(impatient.Newest(&frame_), Found::kFrame);
  ExpectFrame(frame_, 1);
}

TEST_F(SmallFrameRing, InvalidLengthIsBroken) {
  PublishNext(writer_);
  std::byte* const slot = ring_.bytes().data() + sizeof(FlanHeader);
  const auto set = [&](size_t offset, uint32_t value) {
    std::memcpy(slot + offset, &value, sizeof(value));
  };
  for (const auto& [frame_len, metadata_len] :
       {std::pair<uint32_t, uint32_t>{46, 0},
        {45, 33},
        {0, 78},
        {0xFFFFFFFF, 0},
        {0xFFFFFFFF, 0xFFFFFFFF},
        {45, 0xFFFFFFFF}}) {
    set(offsetof(FlanSlot, frame_len), frame_len);
    set(offsetof(FlanSlot, metadata_len), metadata_len);
    EXPECT_EQ(reader_.Newest(&frame_), Found::kBroken);
  }
  set(offsetof(FlanSlot, frame_len), 0);
  set(offsetof(FlanSlot, metadata_len), 77);
  ASSERT_EQ(reader_.Newest(&frame_), Found::kFrame);
  EXPECT_EQ(frame_.metadata.size(), 77u);
}

TEST(FrameRing, AttachErrorTellsWhetherToRetry) {
  FrameTestRing ring(kSmall);
  const auto code = [&](std::span<const std::byte> bytes) {
    return CodeOf(FrameReader::Attach(bytes).status());
  };
  EXPECT_EQ(code(ring.bytes()), ErrorCode::kNotReady);  // All bytes are zero.
  EXPECT_EQ(code(ring.bytes().first(79)), ErrorCode::kNotReady);
  (void)ring.Writer();
  EXPECT_EQ(code(ring.bytes()), ErrorCode::kOk);
  EXPECT_EQ(code(ring.bytes().first(ring.bytes().size() - 1)),
            ErrorCode::kLayoutMismatch);
  ring.header()->magic[3] = 'X';
  EXPECT_EQ(code(ring.bytes()), ErrorCode::kLayoutMismatch);
  ring.header()->magic[3] = 0;  // A writer that stores from the left.
  EXPECT_EQ(code(ring.bytes()), ErrorCode::kNotReady);
}

TEST(FrameRing, CreateRefusesInvalidGeometry) {
  FrameTestRing ring(kSmall);
  EXPECT_EQ(
      CodeOf(FrameWriter::Create(ring.bytes().first(100), kSmall).status()),
      ErrorCode::kInvalidArgument);
  for (const FrameGeometry& geometry :
       {FrameGeometry{.width = 0, .height = 3},
        FrameGeometry{.width = 3, .height = 0},
        FrameGeometry{.width = 3, .height = 3, .channels = 1},
        FrameGeometry{.width = 3, .height = 3, .channels = 5},
        FrameGeometry{.width = 3, .height = 3, .capacity = 0},
        FrameGeometry{.width = kMaxFrameSide + 1, .height = 3},
        FrameGeometry{.width = 3,
        .height = 3,
        .metadata_bytes = kMaxMetadataBytes + 1}}) {
    EXPECT_EQ(CodeOf(FrameWriter::RingBytes(geometry).status()),
              ErrorCode::kInvalidArgument);
  }
}

// docs/protocol.md, "Frames", gives the reason: the writer reuses frame 10's
// slot for frame 10 + capacity once it has published the previous head.
TEST(FrameRing, TheHeadProvesACopyUntilItsSlotMayBeReused) {
  EXPECT_FALSE(HeadProves(10, 10, 1));
  EXPECT_TRUE(HeadProves(10, 10, 2));
  EXPECT_FALSE(HeadProves(10, 11, 2));
  for (const uint64_t head : {10, 11, 16}) {
    EXPECT_TRUE(HeadProves(10, head, 8));
  }
  for (const uint64_t head : {0, 9, 17, 18, 1000}) {
    EXPECT_FALSE(HeadProves(10, head, 8));
  }
}

TEST(FrameRing, HoldsTheGoldensBytesAfterItsThreeFrames) {
  FrameTestRing ring({.width = 2, .height = 2, .capacity = kSampleFlanSlots});
  FrameWriter writer = ring.Writer();
  std::vector<std::byte> frame(kSampleFlanFrameBytes);
  for (int number = 1; number <= 3; ++number) {
    for (size_t i = 0; i < frame.size(); ++i) {
      frame[i] = static_cast<std::byte>(16 * number + static_cast<int>(i));
    }
    writer.Publish(
        frame,
        {.last_reward = 1.5, .rolling_return = -20.25, .step_rate_hz = 1000},
        "");
  }
  const std::vector<uint8_t> golden = SampleFlan();
  ASSERT_EQ(ring.bytes().size(), golden.size());
  EXPECT_EQ(std::memcmp(ring.bytes().data(), golden.data(), golden.size()), 0);
  // The same while the writer writes a frame.
  writer.Reserve();
  uint64_t seq = 0;
  std::memcpy(&seq, &ring.bytes()[108], sizeof(seq));
  EXPECT_EQ(seq, FlanSeqWriting(4));
}

}  // namespace
}  // namespace tandem

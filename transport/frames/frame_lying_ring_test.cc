// Readers of corrupt rings: each byte of a ring gets other values. The ring is
// between two pages without access.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "schema/layout/flan.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/frames/testing/frame_test_ring.h"
#include "transport/frames/testing/guarded_page.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

constexpr size_t kPage = GuardedPage::kBytes;

// Rings that fill the page to its last byte: one slot of 4016 bytes, or eight
// of 502 bytes. Of the eight, only the first is aligned.
constexpr FrameGeometry kOneSlot = {.width = 4,
                                    .height = 5,
                                    .channels = 4,
                                    .capacity = 1,
                                    .metadata_bytes = 4016 - 16 - 80};
constexpr FrameGeometry kEightSlots = {
    .width = 9, .height = 9, .capacity = 8, .metadata_bytes = 502 - 16 - 243};

class LyingRing : public testing::TestWithParam<FrameGeometry> {
 protected:
  LyingRing() : writer_(MakeWriter()) {
    for (uint64_t number = 1; number <= 5; ++number) {
      writer_.Publish(MakeFrame(number, writer_.geometry().FrameBytes()), {},
                      FrameText(number));
    }
    honest_.assign(page_.bytes().begin(), page_.bytes().end());
  }

  FrameWriter MakeWriter() {
    EXPECT_EQ(FrameWriter::RingBytes(GetParam()).value(), kPage);
    return FrameWriter::Create(page_.bytes(), GetParam()).value();
  }
  void Heal() { std::memcpy(page_.bytes().data(), honest_.data(), kPage); }

  // Reads by all calls. Each delivered frame must have the expected size.
  void Read(FrameReader& reader) {
    Frame frame;
    for (const Found found : {reader.Next(&frame), reader.Newest(&frame)}) {
      if (found != Found::kFrame) continue;
      ASSERT_EQ(frame.pixels.size(), reader.geometry().FrameBytes());
      ASSERT_LE(frame.frame_len, frame.pixels.size());
      ASSERT_LE(frame.metadata.size(), kPage);
    }
    (void)reader.Metrics();
  }

  GuardedPage page_;
  FrameWriter writer_;
  std::vector<std::byte> honest_;
};

TEST_P(LyingRing, ReaderSurvivesAnyChangedByte) {
  // The header, and the head of the newest frame's slot.
  std::vector<size_t> offsets;
  for (size_t at = 0; at < sizeof(FlanHeader); ++at) offsets.push_back(at);
  const size_t slot_bytes = (kPage - sizeof(FlanHeader)) / GetParam().capacity;
  const size_t slot = sizeof(FlanHeader) + 4 % GetParam().capacity * slot_bytes;
  for (size_t at = 0; at < sizeof(FlanSlot); ++at) offsets.push_back(slot + at);

  int refused = 0;
  for (const size_t at : offsets) {
    // Inverts each bit, and adds or subtracts one.
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 0x101, 0x1FF}) {
      Heal();
      FrameReader before = FrameReader::Attach(page_.bytes(), 0).value();
      const int value = static_cast<int>(page_.bytes()[at]);
      page_.bytes()[at] = static_cast<std::byte>(
          change < 0x100 ? value ^ change : value + change);
      Read(before);
      absl::StatusOr<FrameReader> after = FrameReader::Attach(page_.bytes(), 0);
      if (after.ok()) {
        Read(*after);
      } else {
        ++refused;
      }
      // The reader recovers once the ring is restored.
      Heal();
      Frame frame;
      ASSERT_EQ(before.Newest(&frame), Found::kFrame) << at << " " << change;
      EXPECT_TRUE(IsFrame(5, frame.pixels)) << at << " " << change;
    }
  }
  EXPECT_GT(refused, 36 * 8);  // Most are among 36 bytes of geometry.
}

TEST_P(LyingRing, ReaderSurvivesManyChangedBytes) {
  std::mt19937 random(5);
  for (int run = 0; run < 5000; ++run) {
    Heal();
    FrameReader before = FrameReader::Attach(page_.bytes(), 0).value();
    const size_t most = run % 2 == 0 ? sizeof(FlanHeader) : kPage;
    for (int change = random() % 8; change >= 0; --change) {
      page_.bytes()[random() % most] = static_cast<std::byte>(random() >> 8);
    }
    Read(before);
    absl::StatusOr<FrameReader> after = FrameReader::Attach(page_.bytes(), 0);
    if (after.ok()) Read(*after);
  }
}

TEST_P(LyingRing, WriterIgnoresChangedRingFields) {
  for (size_t at = 0; at < sizeof(FlanHeader); ++at) {
    page_.bytes()[at] = std::byte{0xFF};
  }
  const uint64_t number = writer_.head() + 1;
  EXPECT_EQ(writer_.Publish(MakeFrame(number, GetParam().FrameBytes()), {},
                            FrameText(number)),
            number);
}

INSTANTIATE_TEST_SUITE_P(Rings, LyingRing,
                         testing::Values(kOneSlot, kEightSlots));

}  // namespace
}  // namespace tandem

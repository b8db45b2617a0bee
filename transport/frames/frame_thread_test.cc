// Writer and readers at full speed as threads of one process, so that
// ThreadSanitizer (--config=tsan) can check them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/frames/racy_copy.h"
#include "transport/frames/testing/frame_test_ring.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

struct Outcome {
  uint64_t whole = 0;
  uint64_t torn = 0;
  uint64_t backwards_or_twice = 0;
};

// Reads until the writer has left.
Outcome ReadAll(FrameReader reader) {
  Outcome outcome;
  Frame frame;
  uint64_t last = 0;
  for (;;) {
    const Found found = reader.Next(&frame);
    if (found == Found::kInvalidated) return outcome;
    if (found == Found::kNothing) continue;
    EXPECT_EQ(found, Found::kFrame);
    outcome.whole += 1;
    outcome.torn += !IsFrame(frame.number, frame.pixels) ||
                    frame.metadata != FrameText(frame.number);
    outcome.backwards_or_twice += frame.number <= last;
    last = frame.number;
  }
}

class FramesBetweenThreads : public testing::TestWithParam<FrameGeometry> {};

TEST_P(FramesBetweenThreads, AreNeverTornNorTwiceNorOutOfOrder) {
  alarm(300);
  constexpr uint64_t kFrames = 20'000;
  FrameTestRing ring(GetParam());
  FrameWriter writer = ring.Writer();
  Outcome first;
  Outcome second;
  std::thread reading([&] { first = ReadAll(ring.Reader()); });
  std::thread reading_too([&] { second = ReadAll(ring.Reader()); });
  std::vector<std::byte> frame(GetParam().FrameBytes());
  for (uint64_t number = 1; number <= kFrames; ++number) {
    FillFrame(number, frame);
    if (number % 2 == 0) {
      writer.Publish(frame, {}, FrameText(number));
    } else {
      // A renderer's plain stores would be a race by design, like RacyCopy's.
      RacyCopy(writer.Reserve(), frame, Cache::kPast);
      writer.Commit({}, FrameText(number));
    }
  }
  writer.Invalidate();
  reading.join();
  reading_too.join();
  for (const Outcome& outcome : {first, second}) {
    EXPECT_GT(outcome.whole, 0u);  // At least the last frame.
    EXPECT_EQ(outcome.torn, 0u);
    EXPECT_EQ(outcome.backwards_or_twice, 0u);
  }
  alarm(0);
}

// Slots of 16 + 84 + 28 bytes are aligned. With 29 bytes of metadata, every
// eighth slot is aligned.
INSTANTIATE_TEST_SUITE_P(
    Capacities, FramesBetweenThreads,
    testing::Values(
        FrameGeometry{
            .width = 28, .height = 1, .capacity = 1, .metadata_bytes = 28},
        FrameGeometry{
            .width = 28, .height = 1, .capacity = 2, .metadata_bytes = 28},
        FrameGeometry{
            .width = 28, .height = 1, .capacity = 2, .metadata_bytes = 29},
        FrameGeometry{
            .width = 28, .height = 1, .capacity = 8, .metadata_bytes = 29},
        FrameGeometry{
            .width = 28, .height = 1, .capacity = 128, .metadata_bytes = 28},
        FrameGeometry{.width = 84,
                      .height = 1,
                      .channels = 1,
                      .capacity = 4,
                      .metadata_bytes = 28,
                      .kind = FrameKind::kBytes}));

}  // namespace
}  // namespace tandem

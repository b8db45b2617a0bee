// A writer at full speed in one process; readers in another on another core.
//
// frame_process_test publishes a few thousand frames of each kind;
// frame_stress_test, the same source, takes minutes and is run by hand:
//
//   bazel test --test_output=all //transport/frames:frame_stress_test
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ostream>
#include <vector>

#include "transport/attached_frames.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/frames/testing/frame_test_ring.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_frame_segment.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

#ifdef TANDEM_FULL_STRESS
constexpr uint64_t kSmallFrames = 1'000'000;
constexpr uint64_t kLargeFrames = 100'000;
constexpr unsigned kWatchdogSecs = 1200;
#else
constexpr uint64_t kSmallFrames = 20'000;
constexpr uint64_t kLargeFrames = 1000;
constexpr unsigned kWatchdogSecs = 60;
#endif

struct Load {
  uint32_t width;
  uint32_t height;
  uint32_t capacity;
  uint64_t frames;

  friend void PrintTo(const Load& load, std::ostream* out) {
    *out << load.frames << " frames of " << load.width << "x" << load.height
         << ", capacity " << load.capacity;
  }
};

// Best effort: on one core the two processes alternate.
void StayOn(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
}

// Reads until the writer has left. Returns 0 when each frame was correct.
int ReadAll(const std::string& run_id, uint64_t frames, int ready) {
  absl::StatusOr<AttachedFrames> attached = AttachedFrames::OpenSegment(run_id);
  if (!attached.ok()) return 1;
  FrameReader& reader = attached->reader();
  (void)!write(ready, "r", 1);
  Frame frame;
  uint64_t whole = 0;
  uint64_t last = 0;
  uint64_t head = 0;
  for (;;) {
    const Found found = reader.Next(&frame);
    const uint64_t now = reader.Head();
    if (now < head) return 2;
    head = now;
    if (found == Found::kInvalidated) break;
    if (found == Found::kNothing) continue;
    if (found != Found::kFrame) return 3;
    if (frame.number <= last) return 4;
    if (!IsFrame(frame.number, frame.pixels)) return 5;
    if (frame.metadata != FrameText(frame.number)) return 6;
    last = frame.number;
    ++whole;
  }
  std::printf("  %llu of %llu frames read, %llu dropped between them\n",
              static_cast<unsigned long long>(whole),
              static_cast<unsigned long long>(frames),
              static_cast<unsigned long long>(reader.dropped()));
  std::fflush(stdout);
  return last == frames ? 0 : 7;
}

class FramesBetweenProcesses : public testing::TestWithParam<Load> {};

TEST_P(FramesBetweenProcesses, AreNeverTornNorTwiceAndTheHeadNeverGoesBack) {
  alarm(kWatchdogSecs);
  const Load& load = GetParam();
  const std::string run_id = UniqueRegionName("stress");
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(run_id, {.width = load.width,
                                         .height = load.height,
                                         .capacity = load.capacity,
                                         .metadata_bytes = 32});
  ASSERT_TRUE(segment.ok()) << segment.status();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kWatchdogSecs);
    StayOn(1);
    _exit(ReadAll(run_id, load.frames, ready[1]));
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  StayOn(0);
  FrameWriter& writer = segment->writer();
  std::vector<std::byte> frame(writer.geometry().FrameBytes());
  for (uint64_t number = 1; number <= load.frames; ++number) {
    if (number % 2 == 0) {
      FillFrame(number, writer.Reserve());
      writer.Commit({}, FrameText(number));
    } else {
      FillFrame(number, frame);
      writer.Publish(frame, {}, FrameText(number));
    }
  }
  writer.Invalidate();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  sched_setaffinity(0, sizeof(before), &before);
  for (const int fd : ready) close(fd);
  alarm(0);
}

// 83x83: slots of 20,715 bytes; every eighth slot is aligned.
INSTANTIATE_TEST_SUITE_P(Loads, FramesBetweenProcesses,
                         testing::Values(Load{84, 84, 1, kSmallFrames},
                                         Load{84, 84, 2, kSmallFrames},
                                         Load{84, 84, 8, kSmallFrames},
                                         Load{84, 84, 128, kSmallFrames},
                                         Load{83, 83, 2, kSmallFrames},
                                         Load{83, 83, 8, kSmallFrames},
                                         Load{640, 480, 1, kLargeFrames},
                                         Load{640, 480, 2, kLargeFrames},
                                         Load{640, 480, 8, kLargeFrames},
                                         Load{640, 480, 128, kLargeFrames}));

}  // namespace
}  // namespace tandem

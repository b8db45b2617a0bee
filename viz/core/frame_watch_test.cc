// FrameWatch against real processes that are killed, stopped, restarted,
// resized and corrupted.
// Each poll checks the guarantee: in state "connected", a viewer shows an image
// that its writer stamped at most 500 ms ago.
// image that was published at most 500 ms ago, by the writer's own stamp.
#include "viz/core/frame_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/unique_fd.h"
#include "transport/frame_geometry.h"
#include "transport/frame_writer.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_frame_segment.h"
#include "transport/region.h"
#include "viz/testing/pattern.h"
#include "viz/testing/readers_lock.h"

namespace tandem {
namespace {

constexpr int64_t kHonestNs = 500'000'000;
constexpr int64_t kWatchdogNs = 60'000'000'000;

class FrameWatchTest : public testing::TestWithParam<PatternRun::Kind> {
 protected:
  PatternRun Run() const {
    return {.kind = GetParam(), .run = run_, .geometry = geometry_};
  }

  // Polls every 10 ms until `done`, and checks the guarantee at each poll.
  void PollUntil(const std::function<bool()>& done) {
    const int64_t begin_ns = MonotonicNanos();
    do {
      ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogNs)
          << FreshnessName(state_) << ": " << watch_.reason();
      LookOnce();
      const timespec wait = {0, 10'000'000};
      nanosleep(&wait, nullptr);
    } while (!done());
  }

  void LookOnce() {
    const int64_t now_ns = MonotonicNanos();
    if (watch_.Poll(now_ns)) CheckImage();
    state_ = watch_.StateAt(now_ns);
    if (state_ == FreshnessState::kConnected) {
      if (PublishedNs() >= excused_before_ns_) {
        EXPECT_GT(PublishedNs(), now_ns - kHonestNs);
      }
      EXPECT_EQ(watch_.reason(), "");
    }
  }

  void LookFor(int64_t span_ns) {
    const int64_t begin_ns = MonotonicNanos();
    PollUntil([&] { return MonotonicNanos() - begin_ns > span_ns; });
  }

  void AwaitState(FreshnessState state) {
    PollUntil([&] { return state_ == state; });
  }

  int64_t PublishedNs() const {
    const nlohmann::json metadata = nlohmann::json::parse(
        watch_.frame().metadata, nullptr, /*allow_exceptions=*/false);
    return metadata.is_object() ? metadata.value("published_ns", int64_t{0})
                                : 0;
  }

  // The image is complete and of the step in its metadata.
  void CheckImage() {
    const Frame& frame = watch_.frame();
    ASSERT_EQ(frame.width, geometry_.width);
    ASSERT_EQ(frame.height, geometry_.height);
    ASSERT_EQ(frame.channels, geometry_.channels);
    if (!check_pixels_) return;
    ASSERT_TRUE(watch_.metadata().step.has_value());
    std::vector<std::byte> expected(geometry_.FrameBytes());
    FillPattern(static_cast<uint64_t>(*watch_.metadata().step), geometry_,
                expected);
    ASSERT_EQ(frame.pixels, expected);
  }

  const std::string run_ = UniqueRegionName("watch");
  FrameGeometry geometry_ = PatternRun().geometry;
  bool check_pixels_ = true;
  FrameWatch watch_{run_};
  int64_t excused_before_ns_ = 0;  // older frames may come late
  FreshnessState state_ = FreshnessState::kUnavailable;
};

using Kind = PatternRun::Kind;

TEST_P(FrameWatchTest, WaitsForRunToAppear) {
  LookFor(50'000'000);
  EXPECT_EQ(state_, FreshnessState::kUnavailable);
  EXPECT_NE(watch_.reason(), "");
  Publisher publisher(Run());
  AwaitState(FreshnessState::kConnected);
  EXPECT_EQ(watch_.reason(), "");
}

TEST_P(FrameWatchTest, IsRightWhenTheWriterIsKilledAndStartedAgain) {
  auto publisher = std::make_unique<Publisher>(Run());
  for (int round = 0; round < 3; ++round) {
    AwaitState(FreshnessState::kConnected);
    publisher->Kill();
    // Only silence shows the death of a foreign writer.
    AwaitState(GetParam() == Kind::kForeign ? FreshnessState::kStale
                                            : FreshnessState::kReconnecting);
    LookFor(100'000'000);
    EXPECT_NE(state_, FreshnessState::kConnected);
    const uint64_t before = watch_.new_frames();
    publisher = nullptr;
    publisher = std::make_unique<Publisher>(Run());
    PollUntil([&] { return watch_.new_frames() > before; });
  }
  AwaitState(FreshnessState::kConnected);
}

TEST_P(FrameWatchTest, GoesStaleWhenTheWriterIsStoppedAndComesBackWithIt) {
  Publisher publisher(Run());
  AwaitState(FreshnessState::kConnected);
  publisher.Stop();
  AwaitState(FreshnessState::kStale);
  LookFor(500'000'000);
  EXPECT_EQ(state_, FreshnessState::kStale);
  EXPECT_GT(watch_.freshness().AgeNsAt(MonotonicNanos()), 500'000'000);
  EXPECT_FALSE(watch_.freshness().AgeIsAtLeast());
  // It may have stopped between a frame's time and the frame.
  excused_before_ns_ = MonotonicNanos();
  publisher.Continue();
  AwaitState(FreshnessState::kConnected);
}

TEST_P(FrameWatchTest, ReportsEndOfRun) {
  auto publisher = std::make_unique<Publisher>(Run());
  AwaitState(FreshnessState::kConnected);
  EXPECT_EQ(publisher->Terminate(), 0);
  // A foreign writer only unlinks its file: a reader with a mapping sees no
  // new frame.
  AwaitState(GetParam() == Kind::kForeign ? FreshnessState::kStale
                                          : FreshnessState::kUnavailable);
  EXPECT_GT(watch_.frame().number, 0u);  // The last image is still there.
  publisher = nullptr;                   // It removes files of this name.
  publisher = std::make_unique<Publisher>(Run());
  AwaitState(FreshnessState::kConnected);
}

TEST_P(FrameWatchTest, FollowsARunToAnotherSize) {
  auto publisher = std::make_unique<Publisher>(Run());
  for (const auto& [width, height, channels] :
       {std::array<uint32_t, 3>{37, 23, 3}, {100, 1, 4}, {640, 480, 3}}) {
    AwaitState(FreshnessState::kConnected);
    publisher = nullptr;
    // Frames already published have the old size, and are checked by it.
    PollUntil([&] { return state_ != FreshnessState::kConnected; });
    geometry_.width = width;
    geometry_.height = height;
    geometry_.channels = channels;
    publisher = std::make_unique<Publisher>(Run());
  }
  AwaitState(FreshnessState::kConnected);
}

// The writer published before the viewer attached, and publishes no more.
TEST_P(FrameWatchTest, FrameFoundAtAttachIsNotLive) {
  PatternRun run = Run();
  run.still_after = 5;
  Publisher publisher(run);
  PollUntil([&] { return watch_.frame().number == 5; });
  FrameWatch late(run_);
  late.Poll(MonotonicNanos());
  ASSERT_EQ(late.frame().number, 5u);
  EXPECT_EQ(late.StateAt(MonotonicNanos()), FreshnessState::kStale);
  EXPECT_TRUE(late.freshness().AgeIsAtLeast());
  EXPECT_EQ(late.new_frames(), 0u);
  EXPECT_EQ(late.frames(), 1u);
}

TEST_P(FrameWatchTest, DetachesFromAnInvalidatedRing) {
  PatternRun run = Run();
  // Within 3 s the watch attaches, also on a busy machine.
  run.still_after = 300;
  run.invalidate_at_end = true;
  auto publisher = std::make_unique<Publisher>(run);
  PollUntil([&] { return watch_.frame().number == 300; });
  AwaitState(FreshnessState::kReconnecting);
  // The viewer does not attach to the finished run again.
  const uint64_t frames = watch_.frames();
  const int64_t begin_ns = MonotonicNanos();
  PollUntil([&] {
    EXPECT_EQ(state_, FreshnessState::kReconnecting);
    return MonotonicNanos() - begin_ns > 300'000'000;
  });
  EXPECT_EQ(watch_.frames(), frames);
  publisher = nullptr;
  publisher = std::make_unique<Publisher>(Run());
  AwaitState(FreshnessState::kConnected);
}

TEST_P(FrameWatchTest, DeliversEachFrameOnceAndCountsTheRest) {
  PatternRun run = Run();
  run.hz = 400;
  run.still_after = 200;
  Publisher publisher(run);
  uint64_t last = 0;
  uint64_t first = 0;
  uint64_t delivered = 0;
  PollUntil([&] {
    if (watch_.frames() != delivered) {
      EXPECT_EQ(watch_.frames(), delivered + 1);
      EXPECT_GT(watch_.frame().number, last);
      delivered = watch_.frames();
      last = watch_.frame().number;
      if (first == 0) first = last;
    }
    return last == 200;
  });
  LookFor(30'000'000);
  EXPECT_EQ(watch_.frames(), delivered);
  EXPECT_EQ(watch_.dropped() + delivered, 200 - first + 1);
  EXPECT_EQ(watch_.histories().rewards.count(), watch_.new_frames());
  EXPECT_EQ(watch_.episodes(), 20);
}

TEST_P(FrameWatchTest, CountsEpisodesOverARestart) {
  PatternRun run = Run();
  run.still_after = 50;
  auto publisher = std::make_unique<Publisher>(run);
  PollUntil([&] { return watch_.episodes() == 5; });
  publisher = nullptr;
  run.still_after = 30;
  publisher = std::make_unique<Publisher>(run);
  PollUntil([&] { return watch_.episodes() == 8; });
}

TEST_P(FrameWatchTest, SurvivesEveryCorruptHeaderByte) {
  Publisher publisher(Run());
  AwaitState(FreshnessState::kConnected);
  const UniqueFd file(open(publisher.path().c_str(), O_RDWR));
  const off_t base = static_cast<off_t>(RingOffset(file.get()));
  check_pixels_ = false;  // The ring's content may be wrong for a moment.
  // The code is one for all kinds of rings: each byte with one kind.
  const off_t step = Run().kind == PatternRun::Kind::kSegment ? 1 : 5;
  for (off_t at = 0; at < 80; at += step) {
    SCOPED_TRACE(at);
    unsigned char byte = 0;
    ASSERT_EQ(pread(file.get(), &byte, 1, base + at), 1);
    const unsigned char corrupt = static_cast<unsigned char>(~byte);
    ASSERT_EQ(pwrite(file.get(), &corrupt, 1, base + at), 1);
    // Flags are hints: while frames arrive, the image is live. The writer
    // rewrites the fields after the first 40 bytes with each frame.
    const bool breaks = at < 40 && (at < 8 || at >= 12);
    if (breaks) {
      PollUntil([&] { return state_ != FreshnessState::kConnected; });
    } else {
      LookFor(40'000'000);
    }
    if (at < 40) {
      ASSERT_EQ(pwrite(file.get(), &byte, 1, base + at), 1);
    }
    AwaitState(FreshnessState::kConnected);
  }
}

TEST_P(FrameWatchTest, SurvivesRandomBytesInTheRing) {
  Publisher publisher(Run());
  AwaitState(FreshnessState::kConnected);
  const UniqueFd file(open(publisher.path().c_str(), O_RDWR));
  const off_t base = static_cast<off_t>(RingOffset(file.get()));
  struct stat about = {};
  ASSERT_EQ(fstat(file.get(), &about), 0);
  std::vector<char> whole(80);
  ASSERT_EQ(pread(file.get(), whole.data(), whole.size(), base), 80);
  check_pixels_ = false;
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const off_t at =
        base + static_cast<off_t>(random() %
                                  static_cast<uint64_t>(about.st_size - base));
    const uint32_t noise = static_cast<uint32_t>(random());
    const size_t bytes = std::min<size_t>(
        sizeof(noise), static_cast<size_t>(about.st_size - at));
    ASSERT_EQ(pwrite(file.get(), &noise, bytes, at),
              static_cast<ssize_t>(bytes));
    watch_.Poll(MonotonicNanos());
  }
  ASSERT_EQ(pwrite(file.get(), whole.data(), 40, base), 40);
  AwaitState(FreshnessState::kConnected);
}

TEST_P(FrameWatchTest, WriterSeesThatNoReaderIsLeft) {
  Publisher publisher(Run());
  AwaitState(FreshnessState::kConnected);
  watch_.Detach();
  EXPECT_EQ(watch_.StateAt(MonotonicNanos()), FreshnessState::kReconnecting);
  EXPECT_FALSE(ReadersLockHeld(publisher.path()));
  LookOnce();
  EXPECT_TRUE(ReadersLockHeld(publisher.path()));
}

INSTANTIATE_TEST_SUITE_P(Rings, FrameWatchTest,
                         testing::Values(Kind::kSegment, Kind::kForeign,
                                         Kind::kRegion),
                         [](const auto& kind) {
                           switch (kind.param) {
                             case Kind::kSegment:
                               return "Segment";
                             case Kind::kForeign:
                               return "Foreign";
                             case Kind::kRegion:
                               break;
                           }
                           return "Region";
                         });

TEST(FrameWatch, TakesTheRegionWhereTheSegmentOfItsNameIsDead) {
  const std::string run = UniqueRegionName("both");
  Publisher segment({.run = run});
  FrameWatch watch(run);
  const auto await = [&](FreshnessState state) {
    const int64_t begin_ns = MonotonicNanos();
    while (watch.StateAt(MonotonicNanos()) != state) {
      ASSERT_LT(MonotonicNanos() - begin_ns, kWatchdogNs) << watch.reason();
      watch.Poll(MonotonicNanos());
      const timespec wait = {0, 10'000'000};
      nanosleep(&wait, nullptr);
    }
  };
  await(FreshnessState::kConnected);
  segment.Kill();
  await(FreshnessState::kReconnecting);
  const Publisher region({.kind = Kind::kRegion, .run = run});
  await(FreshnessState::kConnected);
}

// Enough restarts to overflow an unbounded sum of episodes.
TEST(FrameWatch, FollowsWriterThatRestartsWithEachFrame) {
  const std::string run = UniqueRegionName("again");
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(run, PatternRun().geometry);
  ASSERT_TRUE(segment.ok());
  FrameWatch watch(run);
  for (int i = 0; i < 1'100; ++i) {
    for (const int64_t episodes : {kMaxMetadataInteger, int64_t{1}}) {
      segment->writer().Reserve();
      segment->writer().Commit({},
                               absl::StrCat("{\"episodes\": ", episodes, "}"));
      ASSERT_TRUE(watch.Poll(MonotonicNanos()));
      ASSERT_GE(watch.episodes(), episodes);
    }
  }
  EXPECT_EQ(watch.episodes(), kMaxMetadataInteger + 1);
}

// Publishes like an engine whose run is paused. The test sets the times.
TEST(FrameWatch, RepeatedStepIsNotANewFrame) {
  constexpr int64_t kMs = 1'000'000;
  const std::string run = UniqueRegionName("still");
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(run, PatternRun().geometry);
  ASSERT_TRUE(segment.ok());
  FrameWatch watch(run);
  const int64_t begin = MonotonicNanos();
  const auto publish_at = [&](int64_t at_ms, int step) {
    segment->writer().Reserve();
    segment->writer().Commit({.step_rate_hz = step == 2 ? 0.0 : 60.0},
                             absl::StrCat("{\"step\": ", step, "}"));
    EXPECT_TRUE(watch.Poll(begin + at_ms * kMs));
  };
  const auto state = [&](int64_t at_ms) {
    return watch.StateAt(begin + at_ms * kMs);
  };
  publish_at(1'000, 1);  // Found at attach.
  publish_at(1'100, 2);
  EXPECT_EQ(state(1'100), FreshnessState::kConnected);
  for (int64_t at_ms = 2'000; at_ms < 20'000; at_ms += 1'000) {
    publish_at(at_ms, 2);
    EXPECT_EQ(state(at_ms), FreshnessState::kStale);
    EXPECT_EQ(watch.freshness().AgeNsAt(begin + at_ms * kMs),
              (at_ms - 1'000) * kMs);  // Since the poll before step 2.
    EXPECT_EQ(watch.frame().metrics.step_rate_hz, 0);
  }
  publish_at(20'100, 3);
  EXPECT_EQ(state(20'100), FreshnessState::kStale);  // The last poll is old.
  publish_at(20'120, 4);
  EXPECT_EQ(state(20'120), FreshnessState::kConnected);
}

TEST(FrameWatch, ReportsFileThatIsNotARing) {
  const std::string run = UniqueRegionName("noring");
  const std::string path = "/dev/shm/mosaic.fastlane." + run;
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  const std::string words(4096, 'x');
  ASSERT_EQ(write(file.get(), words.data(), words.size()), 4096);
  FrameWatch watch(run);
  EXPECT_FALSE(watch.Poll(MonotonicNanos()));
  EXPECT_EQ(watch.StateAt(MonotonicNanos()), FreshnessState::kUnavailable);
  EXPECT_NE(watch.reason().find("magic"), std::string::npos) << watch.reason();
  unlink(path.c_str());
}

TEST(FrameWatch, RefusesGiantFramesWithoutCopyingOne) {
  const std::string run = UniqueRegionName("watch");
  FrameGeometry geometry = PatternRun().geometry;
  geometry.width = 16'384;
  geometry.height = 16'384;
  geometry.capacity = 1;
  const uint64_t bytes = *FrameWriter::RingBytes(geometry);
  const std::string path = RegionPath(*FrameSegmentName(run));
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  const absl::Cleanup remove = [&] { unlink(path.c_str()); };
  // Sparse: only the header takes memory.
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  const absl::Cleanup unmap = [&] { munmap(memory, bytes); };
  ASSERT_TRUE(
      FrameWriter::Create({static_cast<std::byte*>(memory), bytes}, geometry)
          .ok());
  FrameWatch watch(run);
  EXPECT_FALSE(watch.Poll(MonotonicNanos()));
  EXPECT_NE(watch.reason().find("at most 256 MiB, found 768 MiB"),
            std::string::npos)
      << watch.reason();
}

TEST(FrameWatch, AcceptsAnyName) {
  for (const char* run : {"", "a/../b", "\n", "..", "no such run"}) {
    FrameWatch watch(run);
    EXPECT_FALSE(watch.Poll(MonotonicNanos()));
    EXPECT_EQ(watch.StateAt(0), FreshnessState::kUnavailable);
    EXPECT_NE(watch.reason(), "");
  }
}

}  // namespace
}  // namespace tandem

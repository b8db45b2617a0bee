// Frame segments and region rings, with real processes that die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"
#include "transport/attached_frames.h"
#include "transport/frames/testing/frame_test_ring.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_frame_segment.h"
#include "transport/region.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;
using Writer = AttachedFrames::Writer;

constexpr FrameGeometry kGeometry = {
    .width = 8, .height = 4, .capacity = 4, .metadata_bytes = 32};

// Contains a character that region names cannot have.
std::string UniqueRunId() { return UniqueRegionName("frames") + " test"; }

std::string PathOf(const std::string& run_id) {
  return RegionPath(FrameSegmentName(run_id).value());
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

OwnedFrameSegment MakeSegment(const std::string& run_id,
                              const FrameGeometry& geometry = kGeometry) {
  absl::StatusOr<OwnedFrameSegment> segment =
      OwnedFrameSegment::Create(run_id, geometry);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

AttachedFrames Attach(const std::string& run_id) {
  absl::StatusOr<AttachedFrames> frames = AttachedFrames::OpenSegment(run_id);
  EXPECT_TRUE(frames.ok()) << frames.status();
  return *std::move(frames);
}

void PublishNext(FrameWriter& writer) {
  const uint64_t number = writer.head() + 1;
  EXPECT_EQ(writer.Publish(MakeFrame(number, writer.geometry().FrameBytes()),
                           {}, FrameText(number)),
            number);
}

void ExpectNewest(AttachedFrames& frames, uint64_t number) {
  Frame frame;
  ASSERT_EQ(frames.reader().Newest(&frame), Found::kFrame);
  EXPECT_EQ(frame.number, number);
  EXPECT_TRUE(IsFrame(number, frame.pixels));
  EXPECT_EQ(frame.metadata, FrameText(number));
}

// An engine that removes a dead segment holds its lock for an instant, as a
// live writer does. The watchdog ends a longer wait.
void AwaitGone(const AttachedFrames& frames) {
  while (frames.writer() != Writer::kGone) usleep(1000);
}

// Returns the frames of a process that made a segment, did `last` and was
// killed. They were attached before: the start of any other test's engine
// removes a dead segment.
AttachedFrames FramesOfKilled(
    const std::string& run_id, const FrameGeometry& geometry,
    const std::function<void(FrameWriter& writer)>& last) {
  int done[2];
  EXPECT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    OwnedFrameSegment segment = MakeSegment(run_id, geometry);
    last(segment.writer());
    (void)!write(done[1], "x", 1);
    pause();
  }
  close(done[1]);
  char byte;
  EXPECT_EQ(read(done[0], &byte, 1), 1);
  close(done[0]);
  AttachedFrames frames = Attach(run_id);
  EXPECT_EQ(frames.writer(), Writer::kAlive);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  AwaitGone(frames);
  return frames;
}

class FrameSegment : public testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }

  const std::string run_id_ = UniqueRunId();
};

TEST_F(FrameSegment, HasMosaicsName) {
  EXPECT_EQ(FrameSegmentName("run/7").value(), "mosaic.fastlane.run_7");
  EXPECT_TRUE(FrameSegmentName(std::string(184, 'x')).ok());
  for (const std::string& bad :
       {std::string(), std::string(185, 'x'), std::string("a\0b", 3)}) {
    EXPECT_EQ(CodeOf(FrameSegmentName(bad).status()),
              ErrorCode::kInvalidArgument);
  }
}

TEST_F(FrameSegment, MarksItselfEndedOnDestruction) {
  EXPECT_EQ(CodeOf(AttachedFrames::OpenSegment(run_id_).status()),
            ErrorCode::kNotReady);
  absl::StatusOr<AttachedFrames> frames = AttachedFrames::OpenSegment(run_id_);
  {
    OwnedFrameSegment segment = MakeSegment(run_id_);
    EXPECT_TRUE(Exists(PathOf(run_id_)));
    struct stat file;
    ASSERT_EQ(stat(PathOf(run_id_).c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0600u);
    EXPECT_EQ(static_cast<uint64_t>(file.st_size),
              FrameWriter::RingBytes(kGeometry).value());
    frames = AttachedFrames::OpenSegment(run_id_);
    ASSERT_TRUE(frames.ok()) << frames.status();
    PublishNext(segment.writer());
    ExpectNewest(*frames, 1);
    EXPECT_EQ(frames->writer(), Writer::kAlive);
    EXPECT_FALSE(frames->reader().Invalidated());
  }
  EXPECT_FALSE(Exists(PathOf(run_id_)));
  EXPECT_TRUE(frames->reader().Invalidated());
  AwaitGone(*frames);
  EXPECT_FALSE(frames->Replaced());
  ExpectNewest(*frames, 1);  // The mapping stays valid.
}

TEST_F(FrameSegment, RefusesASecondWriter) {
  const OwnedFrameSegment segment = MakeSegment(run_id_);
  EXPECT_EQ(CodeOf(OwnedFrameSegment::Create(run_id_, kGeometry).status()),
            ErrorCode::kAlreadyAttached);
}

TEST_F(FrameSegment, ADeadWriterIsSeenAndItsSegmentReplacedByANewFile) {
  AttachedFrames before = FramesOfKilled(
      run_id_, kGeometry, [](FrameWriter& writer) { PublishNext(writer); });
  EXPECT_FALSE(before.reader().Invalidated());
  ExpectNewest(before, 1);

  OwnedFrameSegment second = MakeSegment(run_id_);
  PublishNext(second.writer());
  PublishNext(second.writer());
  EXPECT_TRUE(before.Replaced());
  ExpectNewest(before, 1);  // It is unchanged.
  AttachedFrames after = Attach(run_id_);
  EXPECT_EQ(after.writer(), Writer::kAlive);
  EXPECT_FALSE(after.Replaced());
  ExpectNewest(after, 2);
}

TEST_F(FrameSegment, AWriterKilledInTheMiddleOfAFrameLeavesTheOneBefore) {
  for (const uint32_t capacity : {1u, 2u, 8u}) {
    FrameGeometry geometry = kGeometry;
    geometry.capacity = capacity;
    AttachedFrames frames =
        FramesOfKilled(run_id_, geometry, [](FrameWriter& writer) {
          for (int i = 0; i < 5; ++i) PublishNext(writer);
          const std::span<std::byte> slot = writer.Reserve();
          FillFrame(6, slot.first(slot.size() / 2));
        });
    if (capacity > 1) {
      ExpectNewest(frames, 5);
    } else {  // The writer had only one slot to write to.
      Frame frame;
      EXPECT_EQ(frames.reader().Newest(&frame), Found::kNothing);
    }
  }
  const OwnedFrameSegment next = MakeSegment(run_id_);  // Removes the segment.
}

TEST_F(FrameSegment, SegmentWithoutLockIsReplaced) {
  const std::string path = PathOf(run_id_);
  FrameTestRing ring(kGeometry);
  FrameWriter foreign = ring.Writer();
  PublishNext(foreign);
  {
    const UniqueFd fd(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(write(fd.get(), ring.bytes().data(), ring.bytes().size()),
              static_cast<ssize_t>(ring.bytes().size()));
  }
  AttachedFrames frames = Attach(run_id_);
  EXPECT_EQ(frames.writer(), Writer::kUnknown);
  ExpectNewest(frames, 1);
  const OwnedFrameSegment segment = MakeSegment(run_id_);
  EXPECT_TRUE(frames.Replaced());
  EXPECT_EQ(Attach(run_id_).writer(), Writer::kAlive);
}

TEST_F(FrameSegment, IgnoresAFolderWithTheSegmentsName) {
  const std::string path = PathOf(run_id_);
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  EXPECT_EQ(CodeOf(OwnedFrameSegment::Create(run_id_, kGeometry).status()),
            ErrorCode::kAlreadyAttached);
  EXPECT_FALSE(AttachedFrames::OpenSegment(run_id_).ok());
  ASSERT_EQ(rmdir(path.c_str()), 0);
}

TEST_F(FrameSegment, DetectsReadersThatHoldALock) {
  OwnedFrameSegment alone = MakeSegment(run_id_ + "a");
  EXPECT_FALSE(alone.HasReader());
  OwnedFrameSegment watched = MakeSegment(run_id_ + "b");
  {
    const AttachedFrames first = Attach(run_id_ + "b");
    const AttachedFrames second = Attach(run_id_ + "b");
    EXPECT_TRUE(watched.HasReader());
  }
  // The cached result is up to a second old. The watchdog ends a longer wait.
  while (watched.HasReader()) usleep(1000);
  // The kernel releases a killed reader's lock.
  const pid_t child = fork();
  if (child == 0) {
    const AttachedFrames frames = Attach(run_id_ + "b");
    pause();
    _exit(0);
  }
  while (!watched.HasReader()) usleep(1000);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  while (watched.HasReader()) usleep(1000);
}

TEST_F(FrameSegment, RestoresNameThatAReaderUnlinked) {
  OwnedFrameSegment segment = MakeSegment(run_id_);
  ASSERT_EQ(unlink(PathOf(run_id_).c_str()), 0);
  EXPECT_FALSE(segment.HasReader());
  EXPECT_TRUE(Exists(PathOf(run_id_)));
  EXPECT_EQ(Attach(run_id_).writer(), Writer::kAlive);
}

TEST_F(FrameSegment, AForkedChildOwnsNothing) {
  OwnedFrameSegment segment = MakeSegment(run_id_);
  AttachedFrames frames = Attach(run_id_);
  const pid_t child = fork();
  if (child == 0) {
    const bool ours = segment.IsOurs();
    { const OwnedFrameSegment gone = std::move(segment); }
    _exit(ours ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(segment.IsOurs());
  EXPECT_TRUE(Exists(PathOf(run_id_)));
  EXPECT_FALSE(frames.reader().Invalidated());
  EXPECT_EQ(frames.writer(), Writer::kAlive);
}

TEST_F(FrameSegment, SweepRemovesDeadSegmentsOnly) {
  const std::string dead = UniqueRegionName("frames");
  FramesOfKilled(dead, kGeometry, [](FrameWriter&) {});
  const OwnedFrameSegment living = MakeSegment(UniqueRegionName("frames"));
  RemoveDeadRegions();
  // Another test's engine may be removing it; the spare link goes last. The
  // watchdog ends a longer wait.
  const std::string spare =
      RegionPath(FrameSegmentName(dead).value(), SharedRegion::Link::kSpare);
  while (Exists(spare)) usleep(1000);
  EXPECT_FALSE(Exists(PathOf(dead)));
  EXPECT_TRUE(Exists(RegionPath(living.name())));
}

TEST_F(FrameSegment, RefusesHugeSegmentAndNamesRequiredBytes) {
  const absl::Status status =
      OwnedFrameSegment::Create(
          run_id_, {.width = 16'384, .height = 16'384, .capacity = 65'536})
          .status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "capacity")) << status;
}

RegionSpec SpecWithFrames(const FrameGeometry& frames) {
  return {.num_envs = 2,
          .obs_size = 3,
          .act_size = 1,
          .task = "frames",
          .frames = frames};
}

TEST_F(FrameSegment, ARegionCarriesARing) {
  const std::string name = UniqueRegionName("frames");
  FrameGeometry odd = kGeometry;
  odd.width = 7;
  odd.metadata_bytes = 5;
  absl::StatusOr<OwnedRegion> region =
      OwnedRegion::Create(name, SpecWithFrames(odd), {});
  ASSERT_TRUE(region.ok()) << region.status();
  ASSERT_TRUE(region->Link().ok());
  EXPECT_EQ(region->frame_geometry().width, 7u);
  EXPECT_GE(region->frame_geometry().metadata_bytes, 5u);
  EXPECT_FALSE(region->FramesWatched());

  absl::StatusOr<AttachedFrames> frames = AttachedFrames::OpenRegion(name);
  ASSERT_TRUE(frames.ok()) << frames.status();
  EXPECT_TRUE(region->FramesWatched());
  EXPECT_EQ(frames->writer(), Writer::kAlive);
  EXPECT_EQ(frames->reader().geometry(), region->frame_geometry());
  {
    absl::StatusOr<FrameWriter> writer =
        FrameWriter::Create(region->frame_ring(), region->frame_geometry());
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int i = 0; i < 9; ++i) {
      PublishNext(*writer);
      // A misaligned seq would be wrong while a writer writes.
      writer->Reserve();
      ExpectNewest(*frames, writer->head());
    }
  }
  frames = absl::UnavailableError("left");
  EXPECT_FALSE(region->FramesWatched());
}

TEST_F(FrameSegment, RegionWithoutFramesIsRefused) {
  const std::string name = UniqueRegionName("frames");
  absl::StatusOr<OwnedRegion> region =
      OwnedRegion::Create(name, SpecWithFrames({.capacity = 0}), {});
  ASSERT_TRUE(region.ok() && region->Link().ok());
  EXPECT_TRUE(region->frame_ring().empty());
  EXPECT_FALSE(region->FramesWatched());
  EXPECT_EQ(CodeOf(AttachedFrames::OpenRegion(name).status()),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(AttachedFrames::OpenRegion(name + "x").status()),
            ErrorCode::kNotReady);
  EXPECT_EQ(
      CodeOf(OwnedRegion::Create(name + "y", SpecWithFrames({.width = 0}), {})
                 .status()),
      ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem

// Segments of scenes, with real processes that die.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "schema/goldens/testing/samples.h"
#include "transport/attached_frames.h"
#include "transport/attached_scene.h"
#include "transport/frames/testing/test_scene.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_scene_segment.h"
#include "transport/region.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;
using Writer = AttachedScene::Writer;

constexpr SceneSpec kSpec = {.num_envs = 4, .nodes = 3, .generation = 5};

class SceneSegment : public testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }

  OwnedSceneSegment Make(const SceneSpec& spec = kSpec) const {
    return OwnedSceneSegment::Create(name_, spec, kTestGlb).value();
  }
  AttachedScene Attach() const { return AttachedScene::Open(name_).value(); }
  ErrorCode OpenCode() const {
    return CodeOf(AttachedScene::Open(name_).status());
  }

  const std::string name_ = UniqueRegionName("scene");
};

void PublishNumber(uint64_t number, uint32_t rows, OwnedSceneSegment* to) {
  PoseSnapshot snapshot;
  FillSnapshot(number, kSpec.nodes, rows, &snapshot);
  EXPECT_NE(to->Publish(snapshot), 0u);
}

void ExpectNext(AttachedScene& scene, uint64_t number, uint32_t rows) {
  PoseSnapshot found;
  ASSERT_EQ(scene.reader().Next(&found), Found::kFrame);
  EXPECT_EQ(found.head().exchange, number);
  EXPECT_EQ(found.rows(), rows);
  EXPECT_TRUE(IsSnapshot(found));
}

TEST_F(SceneSegment, ReaderSeesTheGlbAndEachNewestSnapshotOnce) {
  EXPECT_EQ(OpenCode(), ErrorCode::kNotReady);
  OwnedSceneSegment segment = Make();
  EXPECT_EQ(segment.name(), "tandem.scene." + name_);
  AttachedScene scene = Attach();
  const SceneHeader& header = scene.reader().header();
  EXPECT_EQ(header.generation, 5u);
  EXPECT_EQ(header.num_envs, 4u);
  EXPECT_EQ(header.max_rows, 4u);
  EXPECT_EQ(header.nodes, 3u);
  const auto glb = scene.reader().glb();
  EXPECT_EQ(
      absl::string_view(reinterpret_cast<const char*>(glb.data()), glb.size()),
      kTestGlb);
  PoseSnapshot none;
  EXPECT_EQ(scene.reader().Next(&none), Found::kNothing);
  PublishNumber(1, 1, &segment);
  PublishNumber(2, 4, &segment);
  ExpectNext(scene, 2, 4);
  EXPECT_EQ(scene.reader().Next(&none), Found::kNothing);
  for (uint32_t number = 3; number < 20; ++number) {
    PublishNumber(number, number % 5, &segment);
    ExpectNext(scene, number, number % 5);
  }
}

TEST_F(SceneSegment, RefusesSnapshotsOfAnotherSize) {
  OwnedSceneSegment segment = Make();
  PoseSnapshot snapshot;
  FillSnapshot(1, kSpec.nodes, kSpec.num_envs + 1, &snapshot);
  EXPECT_EQ(segment.Publish(snapshot), 0u);
  FillSnapshot(1, kSpec.nodes + 1, 1, &snapshot);
  EXPECT_EQ(segment.Publish(snapshot), 0u);
}

TEST_F(SceneSegment, ANewGenerationReplacesTheOldOne) {
  auto old = std::make_unique<OwnedSceneSegment>(Make());
  PublishNumber(1, 1, old.get());
  EXPECT_EQ(CodeOf(OwnedSceneSegment::Create(name_, kSpec, kTestGlb).status()),
            ErrorCode::kAlreadyAttached);
  AttachedScene scene = Attach();
  EXPECT_FALSE(scene.reader().Invalidated());
  old.reset();
  SceneSpec next = kSpec;
  next.generation = 6;
  const OwnedSceneSegment segment = Make(next);
  ExpectNext(scene, 1, 1);  // the mapping stays
  PoseSnapshot none;
  EXPECT_EQ(scene.reader().Next(&none), Found::kInvalidated);
  EXPECT_TRUE(scene.Replaced());
  scene = Attach();
  EXPECT_FALSE(scene.Replaced());
  EXPECT_EQ(scene.reader().header().generation, 6u);
}

TEST_F(SceneSegment, AWriterKilledInASnapshotLeavesTheOneBefore) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    OwnedSceneSegment segment = Make();
    for (uint64_t number = 1; number <= 5; ++number) {
      PublishNumber(number, 2, &segment);
    }
    // It dies while it writes the next one, through another mapping.
    const auto memory =
        SharedRegion::Open(segment.name(), SharedRegion::Access::kWrite);
    const auto mapping = RegionMapping::Map(*memory, memory->bytes());
    const auto* const header = (*mapping)->At<SceneHeader>(0);
    FlanSlot* const slot = (*mapping)->At<FlanSlot>(
        header->flan_offset + sizeof(FlanHeader) +
        5 % 4 * (*mapping)->At<FlanHeader>(header->flan_offset)->slot_size);
    slot->seq = FlanSeqWriting(6);
    slot->frame_len = 7;
    (void)!write(done[1], "x", 1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  for (const int fd : done) close(fd);
  AttachedScene scene = Attach();
  EXPECT_EQ(scene.writer(), Writer::kAlive);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  // Another test's engine, which removes dead segments, holds the lock for an
  // instant. The watchdog ends a longer wait.
  while (scene.writer() != Writer::kGone) usleep(1000);
  EXPECT_FALSE(scene.reader().Invalidated());
  ExpectNext(scene, 5, 2);
  RemoveDeadRegions();
  const std::string path = RegionPath(scene.name());
  while (access(path.c_str(), F_OK) == 0) usleep(1000);
}

TEST(SceneReader, ReadsTheGolden) {
  const std::vector<uint8_t> golden = SampleScene();
  SceneReader reader =
      SceneReader::Attach(std::as_bytes(std::span(golden))).value();
  EXPECT_EQ(reader.header().generation, 3u);
  EXPECT_EQ(reader.glb().size(), kSampleGlbBytes);
  PoseSnapshot snapshot;
  ASSERT_EQ(reader.Next(&snapshot), Found::kFrame);
  EXPECT_EQ(snapshot.head().exchange, 1001u);
  EXPECT_EQ(snapshot.row(0).step, 345u);
  EXPECT_EQ(snapshot.row(0).flags, kSceneUnknownTime);
  EXPECT_EQ(snapshot.poses(0)[2], 3);
}

TEST_F(SceneSegment, ProgramsForImagesRefuseIt) {
  const OwnedSceneSegment segment = Make();
  EXPECT_EQ(CodeOf(AttachedFrames::OpenRun(segment.name()).status()),
            ErrorCode::kNotReady);
}

TEST_F(SceneSegment, RefusesBadNumbersAndNames) {
  const auto code = [&](const std::string& name, const SceneSpec& spec,
                        absl::string_view glb) {
    return CodeOf(OwnedSceneSegment::Create(name, spec, glb).status());
  };
  EXPECT_EQ(code("", kSpec, kTestGlb), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(name_, kSpec, ""), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(name_, {.num_envs = 0}, kTestGlb),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(name_, {.nodes = kMaxSceneNodes + 1}, kTestGlb),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(name_, {.generation = 0}, kTestGlb),
            ErrorCode::kInvalidArgument);
  const absl::Status large = PlanScene(kSpec, kMaxGlbBytes + 1).status();
  EXPECT_EQ(CodeOf(large), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(large.message(), "GLB")) << large;
  EXPECT_TRUE(SceneSegmentName(std::string(200, 'x')).ok());
}

TEST_F(SceneSegment, ASnapshotHasTheRowsThatFit) {
  const SceneHeader many =
      PlanScene({.num_envs = 4096, .nodes = 50}, 1).value();
  EXPECT_EQ(many.max_rows, kMaxSnapshotBytes / SceneRowBytes(50));
  const SceneHeader huge =
      PlanScene({.num_envs = 4096, .nodes = kMaxSceneNodes}, 1).value();
  EXPECT_EQ(huge.max_rows, 1u);
}

TEST_F(SceneSegment, AFileThatIsNoSceneIsRefused) {
  const std::string path = RegionPath(SceneSegmentName(name_).value());
  for (const size_t bytes : {0u, 10u, 4096u}) {
    { std::ofstream(path, std::ios::trunc) << std::string(bytes, 'x'); }
    EXPECT_EQ(OpenCode(), ErrorCode::kLayoutMismatch) << bytes;
  }
  ASSERT_EQ(unlink(path.c_str()), 0);
}

TEST(PoseSnapshot, TellsRowsThatAreNotFinite) {
  PoseSnapshot snapshot;
  FillSnapshot(1, 2, 3, &snapshot);
  snapshot.poses(1)[13] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(snapshot.IsFinite(0));
  EXPECT_FALSE(snapshot.IsFinite(1));
  EXPECT_TRUE(snapshot.IsFinite(2));
}

TEST_F(SceneSegment, ReaderInAnotherThreadSeesNoTornSnapshot) {
  constexpr uint64_t kSnapshots = 20'000;
  OwnedSceneSegment segment = Make();
  AttachedScene scene = Attach();
  uint64_t whole = 0;
  std::thread reading([&] {
    PoseSnapshot found;
    uint64_t last = 0;
    while (last < kSnapshots) {
      if (scene.reader().Next(&found) != Found::kFrame) continue;
      EXPECT_TRUE(IsSnapshot(found));
      EXPECT_GT(found.head().exchange, last);
      last = found.head().exchange;
      ++whole;
    }
  });
  for (uint64_t number = 1; number <= kSnapshots; ++number) {
    PublishNumber(number, static_cast<uint32_t>(number % 5), &segment);
  }
  reading.join();
  EXPECT_GT(whole, 0u);
}

}  // namespace
}  // namespace tandem

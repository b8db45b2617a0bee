// The segment of a live scene: tests kill its writer before each store to
// shared memory, and at each of its system calls, while it makes the segment,
// publishes and ends it. A reader keeps whole snapshots; the next writer gets
// the name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/attached_scene.h"
#include "transport/frames/testing/test_scene.h"
#include "transport/owned_scene_segment.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr SceneSpec kSpec = {.num_envs = 2, .nodes = 2};
constexpr uint64_t kBefore = 6;  // snapshots: the ring has wrapped

class SceneFaults : public FaultTest {
 protected:
  OwnedSceneSegment Make() const {
    return OwnedSceneSegment::Create(name_, kSpec, kTestGlb).value();
  }
  static void Publish(uint64_t number, OwnedSceneSegment* segment) {
    PoseSnapshot snapshot;
    FillSnapshot(number, kSpec.nodes, /*rows=*/2, &snapshot);
    if (segment->Publish(snapshot) == 0) _exit(97);
  }
  // The name is free, or leads to a complete scene; then a new writer gets it.
  void ExpectTheNameWorks() const {
    const absl::StatusOr<AttachedScene> found = AttachedScene::Open(name_);
    if (found.ok()) {
      EXPECT_EQ(found->reader().glb().size(), kTestGlb.size());
    } else {
      EXPECT_EQ(CodeOf(found.status()), ErrorCode::kNotReady) << found.status();
    }
    OwnedSceneSegment next = Make();
    Publish(1, &next);
    PoseSnapshot snapshot;
    EXPECT_EQ(AttachedScene::Open(name_)->reader().Next(&snapshot),
              FrameReader::Found::kFrame);
  }
};

TEST_F(SceneFaults, AWriterKilledWhileItMakesTheSegmentLeavesNoPartOfIt) {
  KillEverywhere([] {},
                 [this] {
                   Victim::Mark();
                   const OwnedSceneSegment segment = Make();
                   Victim::Mark();
                 },
                 [this] { ExpectTheNameWorks(); });
}

TEST_F(SceneFaults, AWriterKilledInASnapshotLeavesTheOneBefore) {
  KillEverywhere([] {},
                 [this] {
                   OwnedSceneSegment segment = Make();
                   for (uint64_t i = 1; i <= kBefore; ++i) Publish(i, &segment);
                   Victim::Mark();
                   Publish(kBefore + 1, &segment);
                   Victim::Mark();
                   for (;;) pause();
                 },
                 [this] {
                   AttachedScene scene = AttachedScene::Open(name_).value();
                   PoseSnapshot snapshot;
                   ASSERT_EQ(scene.reader().Next(&snapshot),
                             FrameReader::Found::kFrame);
                   EXPECT_TRUE(IsSnapshot(snapshot));
                   EXPECT_GE(snapshot.head().exchange, kBefore);
                   EXPECT_EQ(scene.writer(), AttachedScene::Writer::kGone);
                   ExpectTheNameWorks();
                 });
}

TEST_F(SceneFaults, AWriterKilledWhileItEndsTheSegmentLeavesANameThatWorks) {
  KillEverywhere([] {},
                 [this] {
                   std::optional<OwnedSceneSegment> segment(Make());
                   Publish(1, &*segment);
                   Victim::Mark();
                   segment.reset();
                   Victim::Mark();
                 },
                 [this] { ExpectTheNameWorks(); });
}

}  // namespace
}  // namespace tandem

// Readers of corrupt scenes: each byte of a segment gets other values. The
// segment is between two pages without access.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "transport/frames/testing/guarded_page.h"
#include "transport/frames/testing/test_scene.h"
#include "transport/scene_reader.h"

namespace tandem {
namespace {

using Found = FrameReader::Found;

class LyingScene : public testing::Test {
 protected:
  LyingScene() {
    // At the end of the page, so that each byte beyond the segment is guarded.
    const SceneHeader plan = PlanScene(kSpec, kTestGlb.size()).value();
    segment_ = page_.bytes().last(SceneBytes(plan));
    TestScene scene(kSpec, segment_);
    for (uint64_t number = 1; number <= 5; ++number) scene.Publish(number, 2);
    honest_.assign(segment_.begin(), segment_.end());
  }

  void Heal() { std::memcpy(segment_.data(), honest_.data(), honest_.size()); }

  // Returns whether the segment was accepted. A delivered snapshot must have
  // rows of the right size and of environments that exist.
  static bool Read(absl::StatusOr<SceneReader> reader) {
    if (!reader.ok()) return false;
    PoseSnapshot found;
    for (int i = 0; i < 2; ++i) {
      if (reader->Next(&found) != Found::kFrame) continue;
      EXPECT_LE(found.rows(), reader->header().max_rows);
      EXPECT_EQ(found.nodes(), reader->header().nodes);
      for (uint32_t row = 0; row < found.rows(); ++row) {
        EXPECT_LT(found.row(row).env, reader->header().num_envs);
        EXPECT_EQ(found.poses(row).size(), found.nodes() * kPoseFloats);
      }
    }
    size_t sum = 0;
    for (const std::byte byte : reader->glb()) {
      sum += static_cast<size_t>(byte);  // it is all readable
    }
    EXPECT_GE(sum, 0u);
    return true;
  }

  static constexpr SceneSpec kSpec = {.num_envs = 3, .nodes = 2};
  GuardedPage page_;
  std::span<std::byte> segment_;
  std::vector<std::byte> honest_;
};

TEST_F(LyingScene, ReaderSurvivesAnyChangedByte) {
  int refused = 0;
  for (size_t at = 0; at < segment_.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      Heal();
      absl::StatusOr<SceneReader> before = SceneReader::Attach(segment_);
      segment_[at] ^= static_cast<std::byte>(change);
      Read(std::move(before));
      refused += Read(SceneReader::Attach(segment_)) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 40 * 3);  // most bytes of the header
}

TEST_F(LyingScene, ReaderSurvivesManyChangedBytes) {
  std::mt19937 random(5);
  for (int run = 0; run < 5000; ++run) {
    Heal();
    const size_t most = run % 2 == 0 ? sizeof(SceneHeader) : segment_.size();
    for (int change = random() % 8; change >= 0; --change) {
      segment_[random() % most] = static_cast<std::byte>(random() >> 8);
    }
    Read(SceneReader::Attach(segment_));
  }
}

TEST_F(LyingScene, ReaderRefusesShortMemory) {
  for (size_t bytes = 0; bytes < segment_.size(); bytes += 8) {
    EXPECT_EQ(CodeOf(SceneReader::Attach(segment_.first(bytes)).status()),
              ErrorCode::kLayoutMismatch)
        << bytes;
  }
}

TEST_F(LyingScene, ASnapshotThatContradictsItselfBreaksTheScene) {
  for (const auto& spoil : {
           +[](PoseSnapshot* s) { s->head().rows = 4; },
           +[](PoseSnapshot* s) { s->head().rows = 1; },
           +[](PoseSnapshot* s) { s->head().rows = 0xFFFFFFFF; },
           +[](PoseSnapshot* s) { s->row(1).env = 3; },
       }) {
    std::memset(segment_.data(), 0, segment_.size());
    TestScene scene(kSpec, segment_);
    SceneReader reader = SceneReader::Attach(segment_).value();
    PoseSnapshot snapshot;
    FillSnapshot(1, kSpec.nodes, 2, &snapshot);
    spoil(&snapshot);
    scene.writer().Publish(snapshot.bytes(), {}, "");
    EXPECT_EQ(reader.Next(&snapshot), Found::kBroken);
    scene.Publish(2, 2);
    EXPECT_EQ(reader.Next(&snapshot), Found::kFrame);
  }
}

}  // namespace
}  // namespace tandem

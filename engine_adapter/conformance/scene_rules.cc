// The live scene: the geometry and the poses of the environments.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attached_scene.h"
#include "transport/frame_reader.h"
#include "transport/pose_snapshot.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

class Scene : public RulesFor<Capability::kScene> {
 protected:
  // Watches all environments, and steps until their scene is there.
  AttachedScene Watch() {
    const absl::StatusOr<RpcClient*> calls = engine_.Calls();
    Require(calls.status());
    rpc::EnvelopeT call;
    call.method = rpc::MethodId::WatchScene;
    call.payload.Set(rpc::WatchSceneRequestT());
    const absl::StatusOr<uint64_t> stream = (*calls)->Open(call);
    Require(stream.status());
    stream_ = *stream;
    for (;;) {
      Step();
      const auto item = (*calls)->Next(stream_, Deadline::Now());
      if (CodeOf(item.status()) == ErrorCode::kStepTimeout) continue;
      Require(item.status());
      break;
    }
    absl::StatusOr<AttachedScene> scene = AttachedScene::Open(engine_.name);
    Require(scene.status());
    return *std::move(scene);
  }
  PoseSnapshot Next(AttachedScene& scene) {
    PoseSnapshot snapshot;
    while (scene.reader().Next(&snapshot) != FrameReader::Found::kFrame) {
      Step();
    }
    return snapshot;
  }

  uint64_t stream_ = 0;
};

TEST_F(Scene, IsAGlbOfItsAnnouncedLength) {
  Begin();
  const AttachedScene scene = Watch();
  const std::span<const std::byte> glb = scene.reader().glb();
  ASSERT_GE(glb.size(), 12U);
  uint32_t words[3];
  std::memcpy(words, glb.data(), sizeof(words));
  EXPECT_EQ(std::memcmp(glb.data(), "glTF", 4), 0);
  EXPECT_EQ(words[1], 2U);
  EXPECT_EQ(words[2], glb.size());
}

TEST_F(Scene, HasFinitePosesOfEachEnvironmentInEachSnapshot) {
  Begin();
  AttachedScene scene = Watch();
  EXPECT_EQ(scene.reader().header().num_envs, kEnvs);
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const PoseSnapshot snapshot = Next(scene);
    EXPECT_GE(snapshot.head().exchange, last);
    last = snapshot.head().exchange;
    ASSERT_EQ(snapshot.rows(), kEnvs);
    for (uint32_t row = 0; row < kEnvs; ++row) {
      EXPECT_EQ(snapshot.row(row).env, row);
      EXPECT_TRUE(snapshot.IsFinite(row));
      const std::span<const float> poses = snapshot.poses(row);
      for (size_t node = 0; node < poses.size(); node += kPoseFloats) {
        // std::hypot of float needs glibc 2.35.
        double square = 0;
        for (const float x : poses.subspan(node + 3, 4))
          square += double{x} * x;
        EXPECT_NEAR(std::sqrt(square), 1, 1e-4);
      }
    }
  }
}

TEST_F(Scene, EndsWithItsWatcher) {
  Begin();
  const AttachedScene scene = Watch();
  (*engine_.Calls())->Close(stream_);
  while (!scene.reader().Invalidated()) Step();
}

}  // namespace
}  // namespace tandem

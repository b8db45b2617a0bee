#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/services/mujoco_service.h"
#include "engine_adapter/testing/stepped_engine.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;

constexpr uint32_t kEnvs = 3;

uint64_t NowMs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

class TelemetryServiceTest : public testing::Test {
 protected:
  TelemetryServiceTest() {
    InstallMujocoLog([](absl::string_view) {});
    stepped_.emplace(
        MakeMujocoEngine("HalfCheetah-v5", {.num_envs = kEnvs}).value());
    service_.emplace(stepped_->rig.ports().mujoco, &*stepped_, kEnvs);
  }
  ~TelemetryServiceTest() override { InstallMujocoLog(nullptr); }

  std::optional<SteppedEngine> stepped_;
  std::optional<TelemetryService> service_;
};

TEST_F(TelemetryServiceTest, SchemaDescribesFrames) {
  const auto schema = *service_->GetTelemetrySchema({})->schema;
  EXPECT_EQ(schema.nq, 9u);
  EXPECT_EQ(schema.nu, 6u);
  ASSERT_EQ(schema.observation_names.size(), 9u);
  EXPECT_EQ(schema.observation_names.front(), "rootx");
  EXPECT_EQ(schema.observation_names.back(), "ffoot");
  ASSERT_EQ(schema.action_names.size(), 6u);
}

TEST_F(TelemetryServiceTest, EachMomentGivesAFrameForEachEnvironmentOnce) {
  rpc::StreamTelemetryRequestT request;
  request.target_fps = 25;
  request.env_ids = {2, 0};
  const RpcStream stream = *service_->StreamTelemetry(request);
  EXPECT_EQ(stream.hz, 25);
  const uint64_t before_ms = NowMs();
  const MujocoPort& port = *stepped_->rig.ports().mujoco;
  for (uint32_t moment = 1; moment <= 3; ++moment) {
    const auto frames = *stream.next();
    ASSERT_EQ(frames.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      const auto* const frame = frames[i].AsTelemetryFrame();
      ASSERT_NE(frame, nullptr);
      EXPECT_EQ(frame->frame_number, moment);
      EXPECT_EQ(frame->env_id, request.env_ids[i]);
      EXPECT_EQ(frame->frame_seq, moment - 1);
      EXPECT_EQ(frame->task_index, 0u);
      EXPECT_GE(frame->timestamp_ms, before_ms);
      EXPECT_LE(frame->timestamp_ms, NowMs());
      EXPECT_EQ(frame->observation_qpos,
                port.Joints(request.env_ids[i]).positions);
      // HalfCheetah observes qpos without its first value.
      const Floats& obs = stepped_->rig.obs;
      EXPECT_TRUE(std::equal(frame->observation_qpos.begin() + 1,
                             frame->observation_qpos.end(),
                             obs.begin() + 17 * request.env_ids[i]));
      EXPECT_EQ(frame->action_ctrl, Floats(6, moment == 1 ? 0.0F : 0.25F));
    }
    EXPECT_TRUE(stream.next()->empty());
    std::ranges::fill(stepped_->rig.actions, 0.25F);
    stepped_->Exchange();
  }
  // A moment that the stream passes over counts as well.
  EXPECT_EQ(stream.pass(), 2u);
  EXPECT_EQ(stream.pass(), 0u);
  // The moment is sent when the stream has room again, without a step.
  EXPECT_EQ(stream.next()->front().AsTelemetryFrame()->frame_number, 5u);
  EXPECT_TRUE(stream.next()->empty());
  stepped_->Exchange();
  EXPECT_EQ(stream.next()->front().AsTelemetryFrame()->frame_number, 6u);
}

TEST_F(TelemetryServiceTest, AStepWithoutAnExchangeIsAMomentToo) {
  const RpcStream stream = *service_->StreamTelemetry({});
  ASSERT_EQ(stream.next()->size(), 1u);
  stepped_->SetPaused(true);
  ASSERT_TRUE(stepped_->SingleStep(2, [](auto) {}).ok());
  stepped_->Idle();
  const auto frames = *stream.next();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].AsTelemetryFrame()->env_id, 0u);
  EXPECT_EQ(frames[0].AsTelemetryFrame()->frame_number, 2u);
  EXPECT_EQ(frames[0].AsTelemetryFrame()->frame_seq, 0u);
}

TEST_F(TelemetryServiceTest, AChangeWithoutAStepIsAMomentToo) {
  const RpcStream stream = *service_->StreamTelemetry({});
  const auto positions = [&] {
    const auto frames = *stream.next();
    EXPECT_EQ(frames.size(), 1u);
    EXPECT_TRUE(stream.next()->empty());
    return frames[0].AsTelemetryFrame()->observation_qpos;
  };
  const Floats first = positions();
  const std::vector<uint32_t> env = {0};
  stepped_->Reset(env, 5,
                  [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_NE(positions(), first);
  stepped_->rig.ports().mujoco->SetControl(0, 2, 0.5F);
  stepped_->NoteChange();
  const auto frames = *stream.next();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].AsTelemetryFrame()->action_ctrl[2], 0.5F);
}

TEST_F(TelemetryServiceTest, RefusesUnknownEnvironments) {
  rpc::StreamTelemetryRequestT request;
  request.env_ids = {0, kEnvs};
  EXPECT_EQ(CodeOf(service_->StreamTelemetry(request).status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem

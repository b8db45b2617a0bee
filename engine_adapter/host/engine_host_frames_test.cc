// The host of an engine with frames, with a client and a frame reader in the
// same process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/frame_source.h"
#include "transport/attached_frames.h"
#include "transport/client_side.h"
#include "transport/frame_reader.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 3;

// Environments that count their steps; each byte of an image is the count.
class CountingEngine final : public Engine, public FrameSource {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      counts_[request.env] = 0;
      io.obs[request.env] = 0;
    }
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t env : envs) {
      io.obs[env] = static_cast<float>(++counts_[env]);
      io.rewards[env] = 1;
      io.terminateds[env] = 0;
      io.truncateds[env] = 0;
    }
    return absl::OkStatus();
  }
  FrameSource* frames() override { return draws_ ? this : nullptr; }

  absl::Status Prepare(const FrameOptions& options) override {
    envs_ = options.envs;
    copies_.resize(envs_.size());
    return absl::OkStatus();
  }
  void Capture(uint32_t place) override {
    copies_[place] = counts_[envs_[place]];
  }
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override {
    for (size_t row = 0; row < tile.rows; ++row) {
      std::fill_n(tile.first + row * tile.stride, tile.row_bytes,
                  std::byte{copies_[place]});
    }
    return absl::OkStatus();
  }
  void Stop() override {}

  void DrawNothing() { draws_ = false; }

 private:
  bool draws_ = true;
  std::vector<uint8_t> counts_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint32_t> envs_;
  std::vector<uint8_t> copies_;
  EngineSchema schema_ = {
      .task = "Counting", .num_envs = kEnvs, .obs_size = 1, .act_size = 1};
};

class EngineHostFramesTest : public testing::Test {
 protected:
  absl::Status Serve(const FrameOptions& options) {
    absl::StatusOr<std::unique_ptr<EngineHost>> host = EngineHost::Create(
        &engine_, {.name = name_, .seed = {}, .frames = options, .log = {}});
    if (!host.ok()) return host.status();
    host_ = *std::move(host);
    host_->Start();
    return absl::OkStatus();
  }
  ClientSide Attach() { return *ClientSide::Attach(name_, {}); }
  void Step(ClientSide& client) {
    ASSERT_EQ(client.Send(std::vector<float>(kEnvs)), ErrorCode::kOk);
    ASSERT_EQ(client.Recv(Deadline::After(60)), ErrorCode::kOk);
  }

  const std::string name_ = UniqueRegionName("host_frames");
  CountingEngine engine_;
  std::unique_ptr<EngineHost> host_;
};

const FrameOptions kAllOnDemand = {
    .width = 2, .height = 2, .envs = {0, 1, 2}, .hz = 0};

Frame Newest(const ClientSide& client) {
  FrameReader reader = *FrameReader::Attach(
      {client.mapping()->At<std::byte>(client.plan().flan_offset),
       client.plan().flan_size});
  Frame frame;
  EXPECT_EQ(reader.Newest(&frame), FrameReader::Found::kFrame);
  return frame;
}

TEST_F(EngineHostFramesTest, ARequestIsAnsweredWithTheLastStepsState) {
  ASSERT_TRUE(Serve(kAllOnDemand).ok());
  ClientSide client = Attach();
  for (int i = 0; i < 200; ++i) {
    Step(client);
    ASSERT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kOk);
    const Frame frame = Newest(client);
    ASSERT_EQ(std::to_integer<uint8_t>(frame.pixels[0]),
              static_cast<uint8_t>(client.arrays().obs[0]));
  }
}

TEST_F(EngineHostFramesTest, ANewClientsFrameIsOfItsOwnSession) {
  ASSERT_TRUE(Serve(kAllOnDemand).ok());
  {
    ClientSide client = Attach();
    for (int i = 0; i < 3; ++i) Step(client);
    ASSERT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kOk);
    EXPECT_EQ(Newest(client).pixels[0], std::byte{3});
  }
  ClientSide client = Attach();
  ASSERT_EQ(client.AwaitFrame(Deadline::After(60)), ErrorCode::kOk);
  EXPECT_EQ(Newest(client).pixels[0], std::byte{0});
}

TEST_F(EngineHostFramesTest, AViewerSeesStepsGoBy) {
  FrameOptions options = kAllOnDemand;
  options.hz = 1000;
  ASSERT_TRUE(Serve(options).ok());
  ClientSide client = Attach();
  absl::StatusOr<AttachedFrames> viewer = AttachedFrames::OpenRegion(name_);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  Frame frame;
  for (int seen = 0; seen < 20;) {
    Step(client);
    if (viewer->reader().Next(&frame) == FrameReader::Found::kFrame) ++seen;
  }
  EXPECT_EQ(frame.metrics.last_reward, 1);
  host_.reset();
  EXPECT_TRUE(viewer->reader().Invalidated());
  EXPECT_EQ(viewer->writer(), AttachedFrames::Writer::kGone);
}

TEST_F(EngineHostFramesTest, RefusesFramesOfEngineWithoutRenderer) {
  engine_.DrawNothing();
  const absl::Status status = Serve(kAllOnDemand);
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Counting")) << status;
}

}  // namespace
}  // namespace tandem

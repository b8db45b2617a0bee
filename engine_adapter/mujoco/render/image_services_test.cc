// Services camera, viewport and debug of a MuJoCo engine, called as the RPC
// thread calls them.

#include "engine_adapter/services/image_services.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "engine_adapter/image_queue.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/rpc/main_thread_queue.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

constexpr char kScene[] = R"(<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="3 3 .1"/>
    <camera pos="0 -2 1" xyaxes="1 0 0 0 0.3 1"/>
    <camera name="side" pos="2 0 1" xyaxes="0 1 0 -0.3 0 1"/>
    <body pos="0 0 0.3">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.3 0.2 0.2" rgba="1 0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="5000"/></actuator>
</mujoco>)";
constexpr uint32_t kEnvs = 2;

// The parts of an engine's host that images need, without a client.
class ImageServices : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog(nullptr);
    const std::string path = testing::TempDir() + "/image_services.xml";

    std::ofstream(path) << kScene;
    engine_ = MakeModelEngine(path, {.num_envs = kEnvs}).value();
    const EngineSchema& schema = engine_->schema();
    side_.emplace(EngineSide::Create(UniqueRegionName("images"),
                                     {.num_envs = schema.num_envs,
                                      .obs_size = schema.obs_size,
                                      .act_size = schema.act_size,
                                      .task = schema.task},
                                     {})
                      .value());
    runner_.emplace(&side_->arrays());
    runner_->BeginResetAll(0);
    RunAll(&*runner_, engine_.get());
    ASSERT_TRUE(runner_->status().ok());
    simulation_.emplace(engine_.get(), &*side_, &*runner_,
                        rpc::SimulationMode::FAST, [] {});
    queue_ = std::make_shared<MainThreadQueue>([this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      woken_ = true;
      woken_or_not_.notify_one();
    });
    const EnginePorts ports = engine_->ports();
    camera_.emplace(ports.camera, &*simulation_, queue_, kEnvs);
    viewport_.emplace(ports.camera, &*simulation_, queue_, kEnvs, 30);
    debug_.emplace(ports.debug, &*simulation_, kEnvs);
  }
  void TearDown() override {
    queue_->Close();
    engine_.reset();
  }

  // Runs posted work, as the stepping thread does; waits for the next work.
  void Pump() {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      woken_or_not_.wait(lock, [this] { return woken_; });
      woken_ = false;
    }
    queue_->Pump();
  }

  void Step() {
    for (float& action : side_->arrays().actions) action = 1;
    runner_->Begin(ExchangeKind::kStep, AutoresetMode::kSameStep);
    RunAll(&*runner_, engine_.get());
    ASSERT_TRUE(runner_->status().ok());
    simulation_->Served(ExchangeKind::kStep);
  }

  template <typename Service, typename Request>
  absl::StatusOr<rpc::NamedImageFrameT> Await(
      Service* service,
      void (Service::*call)(const Request&, RpcAnswer<rpc::NamedImageFrameT>),
      const Request& request) {
    std::optional<absl::StatusOr<rpc::NamedImageFrameT>> answered;
    (service->*call)(request, [&](absl::StatusOr<rpc::NamedImageFrameT> got) {
      answered.emplace(std::move(got));
    });
    while (!answered) Pump();
    return *std::move(answered);
  }
  absl::StatusOr<rpc::NamedImageFrameT> Frame(
      const rpc::GetCameraFrameRequestT& request) {
    return Await(&*camera_, &CameraService::GetCameraFrame, request);
  }

  // Returns the stream's next image, if there is one.
  static std::optional<rpc::ImageFrameT> Next(const RpcStream& stream) {
    absl::StatusOr<std::vector<rpc::PayloadUnion>> items = stream.next();
    EXPECT_TRUE(items.ok()) << items.status();
    if (!items.ok() || items->empty()) return std::nullopt;
    return *items->front().AsImageFrame();
  }

  std::mutex mutex_;
  std::condition_variable woken_or_not_;
  bool woken_ = false;  // guarded by mutex_
  std::unique_ptr<Engine> engine_;
  std::optional<EngineSide> side_;
  std::optional<ExchangeRunner> runner_;
  std::optional<Simulation> simulation_;
  std::shared_ptr<MainThreadQueue> queue_;
  std::optional<CameraService> camera_;
  std::optional<ViewportService> viewport_;
  std::optional<DebugService> debug_;
};

rpc::GetCameraFrameRequestT Small() {
  rpc::GetCameraFrameRequestT request;
  request.name = "side";
  request.width = 32;
  request.height = 24;
  return request;
}

TEST_F(ImageServices, CamerasHaveTheIdsOfTheirEntities) {
  const rpc::ListCamerasResponseT list = camera_->ListCameras({}).value();
  ASSERT_EQ(list.cameras.size(), 2U);
  EXPECT_EQ(list.cameras[0]->id, 1U + 2 + 2);  // after bodies and geoms
  EXPECT_EQ(list.cameras[0]->name, "");
  EXPECT_EQ(list.cameras[1]->id, 6U);
  EXPECT_EQ(list.cameras[1]->name, "side");
}

TEST_F(ImageServices, ImageHasItsMetadata) {
  rpc::GetCameraFrameRequestT request = Small();
  request.env_id = 1;
  rpc::NamedImageFrameT named = Frame(request).value();
  EXPECT_EQ(named.name, "side");
  EXPECT_EQ(named.frame->data.size(), 32U * 24 * 3);
  EXPECT_EQ(named.frame->width, 32U);
  EXPECT_EQ(named.frame->height, 24U);
  EXPECT_EQ(named.frame->channels, 3U);
  EXPECT_EQ(named.frame->format, "raw");
  EXPECT_EQ(named.frame->env_id, 1U);
  EXPECT_GT(named.frame->timestamp_ms, 1'600'000'000'000U);

  request.name.clear();
  request.id = 5;
  request.width = request.height = 0;
  request.kind = rpc::CameraStreamKind::DEPTH;
  named = Frame(request).value();
  EXPECT_EQ(named.name, "");
  EXPECT_EQ(named.frame->data.size(), 640U * 480 * 2);
  EXPECT_EQ(named.frame->channels, 1U);
  EXPECT_EQ(named.frame->format, "gray16");
  EXPECT_GT(named.frame->depth_scale, 0);
}

TEST_F(ImageServices, LargeImagesAreBoundedUntilTheyAreHandedOver) {
  rpc::GetCameraFrameRequestT request = Small();
  request.width = request.height = 2048;  // 12 MiB
  int asked = 0;
  absl::Status refused;
  const auto ask = [&] {
    ++asked;
    camera_->GetCameraFrame(request, [&](const auto& got) {
      if (CodeOf(got.status()) == ErrorCode::kRingFull) refused = got.status();
    });
  };
  while (refused.ok() && asked < 100) ask();
  EXPECT_EQ(asked, 256 / 12 + 1);
  EXPECT_TRUE(absl::StrContains(refused.message(), "ask again")) << refused;
  // The render thread may have rendered some: there is still no room.
  refused = absl::OkStatus();
  ask();
  EXPECT_FALSE(refused.ok());
  refused = absl::OkStatus();
  Pump();
  ask();
  EXPECT_TRUE(refused.ok()) << refused;
}

TEST_F(ImageServices, CancelledRequestIsNotDrawn) {
  // The render thread blocks in an image until `go_on` is set.
  std::promise<void> go_on;
  const auto held_up = std::make_shared<bool>(true);
  ASSERT_TRUE(engine_->ports()
                  .camera
                  ->Draw({.env = 0, .index = 1, .width = 32, .height = 24},
                         held_up,
                         [goes_on = go_on.get_future().share()](const auto&) {
                           goes_on.wait();
                         })
                  .ok());
  auto waits = std::make_shared<bool>(true);
  int answers = 0;
  // As many as there may be: that one, these, and a stream's.
  for (size_t i = 2; i < ImageQueue::kMostAtATime; ++i) {
    camera_->GetCameraFrame(Small(), {[&](const auto&) { ++answers; }, waits});
  }
  rpc::StreamCameraRequestT streamed;
  streamed.name = "side";
  std::optional<RpcStream> stream = camera_->StreamCamera(streamed).value();
  waits.reset();
  stream.reset();
  // A cancelled request does not count as pending.
  constexpr int kWanted = 5;
  int wanted = 0;
  for (int i = 0; i < kWanted; ++i) {
    camera_->GetCameraFrame(Small(), [&](const auto& frame) {
      EXPECT_TRUE(frame.ok()) << frame.status();
      ++wanted;
    });
  }
  go_on.set_value();
  while (wanted < kWanted) Pump();
  EXPECT_EQ(answers, 0);
}

TEST_F(ImageServices, RefusesUnknownCamerasAndInvalidSizes) {
  std::vector<
      std::pair<std::string, std::function<void(rpc::GetCameraFrameRequestT*)>>>
      wrongs = {
          {"env", [](auto* request) { request->env_id = kEnvs; }},
          {"'side' 6", [](auto* request) { request->name = "front"; }},
          {"id 4",
           [](auto* request) {
             request->name.clear();
             request->id = 4;
           }},
          {"png", [](auto* request) { request->format = "webp"; }},
          {"gray16",
           [](auto* request) {
             request->kind = rpc::CameraStreamKind::DEPTH;
             request->format = "png";
           }},
          {"kind",
           [](auto* request) {
             request->kind = static_cast<rpc::CameraStreamKind>(7);
           }},
          {"pixels",
           [](auto* request) { request->width = request->height = 8000; }},
          {"8192", [](auto* request) { request->width = ~0U; }},
      };
  for (const auto& [expected, spoil] : wrongs) {
    rpc::GetCameraFrameRequestT request = Small();
    spoil(&request);
    const absl::Status status = Frame(request).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << expected;
    EXPECT_TRUE(absl::StrContains(status.message(), expected)) << status;
  }
  rpc::GetViewportFrameRequestT viewport;
  viewport.viewport_name = "north";
  const absl::Status status =
      Await(&*viewport_, &ViewportService::GetViewportFrame, viewport).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "main, gymnasium")) << status;
}

TEST_F(ImageServices, AStreamGivesEachNewStateOnce) {
  rpc::StreamCameraRequestT request;
  request.name = "side";
  request.width = 32;
  request.height = 24;
  request.target_fps = 7;
  const RpcStream stream = camera_->StreamCamera(request).value();
  EXPECT_EQ(stream.hz, 7);
  std::vector<rpc::ImageFrameT> frames;
  while (frames.size() < 3) {
    Pump();
    std::optional<rpc::ImageFrameT> frame = Next(stream);
    ASSERT_TRUE(frame.has_value());
    frames.push_back(*std::move(frame));
    for (int i = 0; i < 20; ++i) Step();
    EXPECT_FALSE(Next(stream).has_value());  // begins the next image
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].frame_number, i + 1);
  }
  EXPECT_NE(frames[0].data, frames[1].data);
  EXPECT_NE(frames[1].data, frames[2].data);
}

TEST_F(ImageServices, AStreamShowsWhatChangesWithoutAStep) {
  rpc::StreamCameraRequestT request;
  request.name = "side";
  request.width = 32;
  request.height = 24;
  const RpcStream stream = camera_->StreamCamera(request).value();
  Pump();
  const std::optional<rpc::ImageFrameT> before = Next(stream);
  ASSERT_TRUE(before.has_value());
  EXPECT_FALSE(Next(stream).has_value());  // begins no image

  rpc::DebugDrawRequestT draw;
  draw.velocity_command = std::make_unique<rpc::DebugVelocityCommandT>();
  draw.velocity_command->lin_vel_x = 1;
  ASSERT_TRUE(debug_->Draw(draw).ok());
  EXPECT_FALSE(Next(stream).has_value());  // begins the next image
  Pump();
  const std::optional<rpc::ImageFrameT> after = Next(stream);
  ASSERT_TRUE(after.has_value());
  EXPECT_NE(after->data, before->data);
}

TEST_F(ImageServices, StreamMayEndWhileItsImageIsDrawn) {
  {
    rpc::StreamCameraRequestT request;
    request.name = "side";
    const RpcStream stream = camera_->StreamCamera(request).value();
  }
  EXPECT_TRUE(Frame(Small()).ok());
}

TEST_F(ImageServices, EngineStopAnswersPendingRequests) {
  int answers = 0;
  for (int i = 0; i < 20; ++i) {
    camera_->GetCameraFrame(Small(), [&](const auto&) { ++answers; });
  }
  engine_.reset();
  queue_->Pump();
  EXPECT_EQ(answers, 20);
}

TEST_F(ImageServices, TooManyImagesAtATimeAreRefused) {
  int refused = 0;
  int answers = 0;
  for (int i = 0; i < 300; ++i) {
    camera_->GetCameraFrame(Small(), [&](const auto& frame) {
      ++answers;
      if (CodeOf(frame.status()) == ErrorCode::kRingFull) ++refused;
    });
  }
  EXPECT_EQ(refused, 300 - 128);
  engine_.reset();
  queue_->Pump();
  EXPECT_EQ(answers, 300);
}

TEST_F(ImageServices, ViewportInfoDescribesNewestRunningStream) {
  rpc::GetViewportInfoResponseT info = viewport_->GetViewportInfo({}).value();
  EXPECT_EQ(info.available_viewports,
            (std::vector<std::string>{"main", "gymnasium"}));
  EXPECT_EQ(info.current_config, nullptr);
  std::optional<RpcStream> first = viewport_->StreamViewport({}).value();
  Pump();
  EXPECT_TRUE(Next(*first).has_value());
  {
    rpc::StartViewportStreamRequestT request;
    request.viewport_name = "gymnasium";
    request.target_fps = 50;
    const RpcStream stream = viewport_->StreamViewport(request).value();
    Pump();
    EXPECT_TRUE(Next(stream).has_value());
    info = viewport_->GetViewportInfo({}).value();
    EXPECT_TRUE(info.current_config->streaming);
    EXPECT_EQ(info.current_config->viewport_name, "gymnasium");
    EXPECT_EQ(info.current_config->fps, 30U);  // the greatest permitted rate
    EXPECT_EQ(info.current_config->width, 640U);
    EXPECT_EQ(info.current_config->height, 480U);
  }
  info = viewport_->GetViewportInfo({}).value();
  ASSERT_NE(info.current_config, nullptr);
  EXPECT_EQ(info.current_config->viewport_name, "main");
  first.reset();
  EXPECT_EQ(viewport_->GetViewportInfo({})->current_config, nullptr);
}

TEST_F(ImageServices, DebugDrawsIntoOneEnvironmentsImages) {
  const auto image = [&](uint32_t env) {
    rpc::GetCameraFrameRequestT request = Small();
    request.env_id = env;
    return Frame(request).value().frame->data;
  };
  const std::vector<uint8_t> plain = image(1);
  rpc::DebugDrawRequestT request;
  request.env_id = 1;
  request.velocity_command = std::make_unique<rpc::DebugVelocityCommandT>();
  request.velocity_command->origin = std::make_unique<rpc::Vec3>(0, 0, 0.6F);
  request.velocity_command->lin_vel_y = 1;
  EXPECT_TRUE(debug_->Draw(request).value().success);
  EXPECT_NE(image(1), plain);
  EXPECT_EQ(image(0), plain);
  request.velocity_command.reset();
  request.clear_previous = true;
  ASSERT_TRUE(debug_->Draw(request).ok());
  EXPECT_EQ(image(1), plain);
  request.env_id = kEnvs;
  EXPECT_EQ(CodeOf(debug_->Draw(request).status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem

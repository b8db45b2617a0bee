// An engine that takes its work by Next, between real processes, with and
// without images and frames. Tests kill and stop it between Next and Done, and
// kill its client there.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/frame_source.h"
#include "schema/layout/lrbc.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/attached_frames.h"
#include "transport/client_side.h"
#include "transport/frame_reader.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = CountingServer::kEnvs;
using Counts = std::array<uint8_t, kEnvs>;

// Each byte of an environment's image is its count.
class CountPainter final : public FrameSource {
 public:
  explicit CountPainter(const Counts* counts) : counts_(counts) {}

  absl::Status Prepare(const FrameOptions& options) override {
    envs_ = options.envs;
    copies_.resize(envs_.size());
    return absl::OkStatus();
  }
  void Capture(uint32_t place) override {
    copies_[place] = (*counts_)[envs_[place]];
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

 private:
  const Counts* const counts_;
  std::vector<uint32_t> envs_;
  std::vector<uint8_t> copies_;
};

// Its results are CountingServer's.
class TickedCounter final : public EngineBase {
 public:
  const EngineSchema& schema() const override { return schema_; }
  FrameSource* frames() override { return &frames_; }
  FrameSource* images() override { return &images_; }

  void Do(const EngineWork& work) {
    for (const ResetRequest& request : work.resets) {
      counts_[request.env] = 0;
      Observe(work.reset_io.obs, request.env, 0);
    }
    for (const uint32_t env : work.steps) {
      ++counts_[env];
      Observe(work.step_io.obs, env, work.step_io.actions[env]);
      work.step_io.rewards[env] = 0;
      work.step_io.terminateds[env] = 0;
      work.step_io.truncateds[env] = 0;
    }
  }

 private:
  void Observe(std::span<float> obs, uint32_t env, float action) const {
    obs[2 * env] = static_cast<float>(counts_[env]);
    obs[2 * env + 1] = action;
  }

  Counts counts_ = {};
  CountPainter frames_{&counts_};
  CountPainter images_{&counts_};
  EngineSchema schema_ = {
      .task = "ticked", .num_envs = kEnvs, .obs_size = 2, .act_size = 1};
};

// The parameter: whether the engine has images and frames, which a viewer reads
// during each test.
class TickedFaults : public FaultTest,
                     public testing::WithParamInterface<bool> {
 protected:
  static constexpr int kDraws = 30;

  // The engine's process. If hold_ is set, it marks its second step, between
  // Next and Done, and then only ticks until hold_ is cleared.
  void Serve() {
    TickedCounter engine;
    EngineHost::Options options = {.name = name_};
    if (GetParam()) {
      options.frames =
          FrameOptions{.width = 2, .height = 2, .envs = {0, 1}, .hz = 1000};
      options.images = ImageOptions{.width = 2, .height = 2};
    }
    const auto host = EngineHost::CreateTicked(&engine, std::move(options));
    if (!host.ok()) _exit(1);
    for (int steps = 0;;) {
      const EngineWork* const work = (*host)->Next(Deadline::Infinite());
      if (work == nullptr) continue;
      if (!work->steps.empty() && ++steps == 2 && hold_.Get()) {
        Victim::Mark();
        while (hold_.Get()) {
          if ((*host)->Next(Deadline::Now()) != nullptr) _exit(2);
          usleep(1000);
        }
      }
      engine.Do(*work);
      if (!(*host)->Done(absl::OkStatus()).ok()) _exit(3);
    }
  }
  // Serves until the test kills it.
  std::unique_ptr<Victim> StartTicked() {
    hold_.Set(false);
    auto engine = std::make_unique<Victim>([this] { Serve(); });
    engine->Release();
    return engine;
  }

  // An engine that holds in its client's second step.
  struct HeldStep {
    std::unique_ptr<Victim> engine;
    absl::StatusOr<ClientSide> client;
    std::optional<AttachedFrames> viewer;
  };
  HeldStep StartHeldStep() {
    hold_.Set(true);
    auto engine = std::make_unique<Victim>([this] { Serve(); });
    engine->RunOn();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    EXPECT_TRUE(client.ok()) << client.status();
    std::optional<AttachedFrames> viewer;
    if (GetParam()) viewer.emplace(AttachedFrames::OpenRegion(name_).value());
    EXPECT_EQ(Step(*client, 1), ErrorCode::kOk);
    EXPECT_EQ(client->Send(second_actions_), ErrorCode::kOk);
    EXPECT_TRUE(engine->AwaitMark());
    return {std::move(engine), std::move(client), std::move(viewer)};
  }
  // The engine's instructions from Next until shortly after its answer.
  int InstructionsUntilDone() {
    const HeldStep held = StartHeldStep();
    hold_.Set(false);
    const LrbcHeader* const header = held.client->mapping()->header();
    // relaxed: only compared.
    const auto answered = [header] {
      return header->frame_seq.load(std::memory_order_relaxed) == 2;
    };
    return InstructionsUntil(*held.engine, answered);
  }

  // Steps, and checks the results of step number `count`.
  ErrorCode Step(ClientSide& client, float count) {
    const ErrorCode code = StepAndCheck(client, 10 * count, count);
    if (code == ErrorCode::kOk) ExpectPicturesOf(client, count);
    return code;
  }
  void ExpectPicturesOf(ClientSide& client, float count) {
    if (!GetParam()) return;
    const auto wanted = static_cast<uint8_t>(count);
    EXPECT_EQ(client.arrays().images.front(), wanted);
    EXPECT_EQ(client.arrays().images.back(), wanted);
    ASSERT_EQ(client.AwaitFrame(Deadline::After(20)), ErrorCode::kOk);
    const LrbcHeader& plan = client.plan();
    absl::StatusOr<FrameReader> reader = FrameReader::Attach(
        {client.mapping()->At<std::byte>(plan.flan_offset), plan.flan_size});
    ASSERT_TRUE(reader.ok()) << reader.status();
    Frame frame;
    ASSERT_EQ(reader->Newest(&frame), FrameReader::Found::kFrame);
    EXPECT_EQ(frame.pixels.front(), std::byte{wanted});
  }
  // The client has the results of its second step; it steps on.
  void ExpectSecondStepAndMore(ClientSide& client) {
    EXPECT_EQ(client.arrays().obs[0], 2);
    EXPECT_EQ(client.arrays().obs[1], second_actions_[0]);
    ExpectPicturesOf(client, 2);
    for (float count = 3; count < 6; ++count) {
      EXPECT_EQ(Step(client, count), ErrorCode::kOk);
    }
  }
  void ExpectNewSession(ClientSide& client) {
    for (float count = 1; count < 4; ++count) {
      EXPECT_EQ(Step(client, count), ErrorCode::kOk);
    }
  }

  const std::vector<float> second_actions_ = {7, 7};
  SharedFlag hold_;
};

TEST_P(TickedFaults, AnEngineKilledBeforeDoneHasAnsweredOrIsGone) {
  const int length = InstructionsUntilDone();
  int answered = 0;
  const int places = AtPlaces(kDraws, length, [&](int place) {
    HeldStep held = StartHeldStep();
    hold_.Set(false);
    held.engine->Advance(Victim::kInstruction, place);
    held.engine->Kill();
    const ErrorCode code = held.client->Recv(Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++answered;
      EXPECT_EQ(held.client->arrays().obs[0], 2);
    } else {
      EXPECT_EQ(code, ErrorCode::kPeerGone);
    }
    if (held.viewer) {
      EXPECT_EQ(held.viewer->writer(), AttachedFrames::Writer::kGone);
    }
    const std::unique_ptr<Victim> next = StartTicked();
    const absl::Status status = held.client->Reconnect(20);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNewSession(*held.client);
  });
  std::printf("killed the engine at %d of %d instructions; %d answered\n",
              places, length, answered);
  EXPECT_LT(answered, places);
}

TEST_P(TickedFaults, AnEngineFrozenBeforeDoneTimesOutAndThenAnswers) {
  const int length = InstructionsUntilDone();
  int late = 0;
  const int places = AtPlaces(kDraws / 2, length, [&](int place) {
    HeldStep held = StartHeldStep();
    hold_.Set(false);
    held.engine->Advance(Victim::kInstruction, place);
    ErrorCode code = held.client->Recv(Deadline::After(0.02));
    held.engine->Release();
    if (code != ErrorCode::kOk) {
      ++late;
      EXPECT_EQ(code, ErrorCode::kStepTimeout);
      code = held.client->Recv(Deadline::After(20));
    }
    ASSERT_EQ(code, ErrorCode::kOk) << held.client->Explain(code);
    ExpectSecondStepAndMore(*held.client);
  });
  std::printf("froze the engine at %d of %d instructions; %d were late\n",
              places, length, late);
  EXPECT_GT(late, 0);
}

TEST_P(TickedFaults, AnEngineStoppedDuringAStepTimesOutAndThenAnswers) {
  HeldStep held = StartHeldStep();
  held.engine->Release();  // it ticks on
  EXPECT_EQ(held.client->Recv(Deadline::After(0.02)), ErrorCode::kStepTimeout);
  held.engine->Stop();
  hold_.Set(false);
  EXPECT_EQ(held.client->Recv(Deadline::After(0.1)), ErrorCode::kStepTimeout);
  EXPECT_EQ(held.client->Send(second_actions_), ErrorCode::kStepPending);
  if (held.viewer) {
    EXPECT_EQ(held.viewer->writer(), AttachedFrames::Writer::kAlive);
  }
  held.engine->Continue();
  ASSERT_EQ(held.client->Recv(Deadline::After(20)), ErrorCode::kOk);
  ExpectSecondStepAndMore(*held.client);
}

TEST_P(TickedFaults, AClientKilledDuringAStepIsFollowedByAFreshOne) {
  hold_.Set(true);
  const auto engine = std::make_unique<Victim>([this] { Serve(); });
  engine->RunOn();
  Victim client([this] {
    absl::StatusOr<ClientSide> side = ClientSide::Attach(name_, {});
    if (!side.ok() || Step(*side, 1) != ErrorCode::kOk) _exit(1);
    if (side->Send(second_actions_) != ErrorCode::kOk) _exit(2);
    Victim::Mark();
  });
  ASSERT_TRUE(client.RunToMark());
  ASSERT_TRUE(engine->AwaitMark());
  client.Kill();
  engine->Release();
  hold_.Set(false);
  absl::StatusOr<ClientSide> next = ClientSide::Attach(name_, {});
  ASSERT_TRUE(next.ok()) << next.status();
  ExpectNewSession(*next);
}

INSTANTIATE_TEST_SUITE_P(WithPictures, TickedFaults, testing::Bool());

}  // namespace
}  // namespace tandem

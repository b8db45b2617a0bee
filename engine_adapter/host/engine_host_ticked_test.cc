// A host whose engine takes its work by Next, and does it ticks later. One
// thread plays the engine; the client attaches in another thread, then steps in
// this one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/host/testing/calling_client.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 2;
constexpr float kEpisode = 3;

// Observes the steps since the reset. An episode has three steps.
class TickingEngine final : public EngineBase, public MujocoPort {
 public:
  const EngineSchema& schema() const override { return schema_; }
  double step_secs() const override { return 0.001; }
  EnginePorts ports() override { return {.mujoco = this}; }

  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t) const override { return {}; }
  std::vector<float> Controls(uint32_t) const override { return {0}; }
  void SetControl(uint32_t, uint32_t, float) override {}

  // Of all environments together.
  size_t all_steps() const { return all_steps_; }
  void Do(const EngineWork& work) {
    for (const ResetRequest& request : work.resets) {
      work.reset_io.obs[request.env] = steps_[request.env] = 0;
    }
    all_steps_ += work.steps.size();
    for (const uint32_t env : work.steps) {
      work.step_io.obs[env] = ++steps_[env];
      work.step_io.rewards[env] = 1;
      work.step_io.terminateds[env] = steps_[env] == kEpisode ? 1 : 0;
      work.step_io.truncateds[env] = 0;
    }
  }

 private:
  std::array<float, kEnvs> steps_ = {};
  size_t all_steps_ = 0;
  Info info_ = {.nq = 1,
                .nv = 1,
                .joint_names = {"count"},
                .position_names = {"count"},
                .actuators = {{.name = "motor", .low = -1, .high = 1}}};
  EngineSchema schema_ = {
      .task = "Ticking", .num_envs = kEnvs, .obs_size = 1, .act_size = 1};
};

class EngineHostTickedTest : public testing::Test {
 protected:
  void SetUp() override { alarm(600); }
  void TearDown() override {
    client_.reset();
    host_.reset();
    EXPECT_NE(access(RegionPath(name_).c_str(), F_OK), 0);
    alarm(0);
  }

  void Create(std::optional<rpc::SimulationMode> mode = {}) {
    auto host = EngineHost::CreateTicked(
        &engine_, {.name = name_, .seed = 40, .mode = mode});
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  const EngineWork* Next() { return host_->Next(Deadline::Now()); }
  void Do(const EngineWork* work) {
    ASSERT_NE(work, nullptr);
    engine_.Do(*work);
    const absl::Status status = host_->Done(absl::OkStatus());
    ASSERT_TRUE(status.ok()) << status;
  }
  // Does the given work at once, then all that is due.
  void DoAll(const EngineWork* work) {
    for (; work != nullptr; work = Next()) Do(work);
  }
  void Open(std::optional<rpc::SimulationMode> mode = {}) {
    Create(mode);
    Do(Next());
    ASSERT_EQ(access(RegionPath(name_).c_str(), F_OK), 0);
    auto attached = std::async(std::launch::async, [this] {
      client_ = std::make_unique<CallingClient>(name_);
    });
    while (attached.wait_for(std::chrono::seconds(0)) !=
           std::future_status::ready) {
      DoAll(Next());
    }
  }
  // The code of the client's exchange that it has sent.
  ErrorCode Result() { return client_->side().Recv(Deadline::Now()); }
  float Observation(uint32_t env) { return client_->side().arrays().obs[env]; }
  void CallSetPaused(uint64_t id, bool paused) {
    rpc::SetPausedRequestT request;
    request.paused = paused;
    client_->Call(rpc::MethodId::SetPaused, id, request);
  }
  uint64_t NextAnswer() {
    const std::optional<rpc::EnvelopeT> answer = client_->Take();
    if (!answer) return 0;
    EXPECT_EQ(answer->error_message, "");
    return answer->correlation_id;
  }

  const std::string name_ = UniqueRegionName("host_ticked");
  TickingEngine engine_;
  std::unique_ptr<EngineHost> host_;
  std::unique_ptr<CallingClient> client_;
};

TEST_F(EngineHostTickedTest, OpensAfterTheFirstReset) {
  Create();
  const EngineWork* const work = Next();
  ASSERT_NE(work, nullptr);
  EXPECT_TRUE(work->steps.empty());
  ASSERT_EQ(work->resets.size(), kEnvs);
  EXPECT_EQ(work->resets[1].env, 1u);
  EXPECT_EQ(work->resets[1].seed, 41u);
  EXPECT_EQ(Next(), nullptr);
  EXPECT_NE(access(RegionPath(name_).c_str(), F_OK), 0);
  Do(work);
  EXPECT_EQ(access(RegionPath(name_).c_str(), F_OK), 0);
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(EngineHostTickedTest, AFailedFirstResetOpensNothing) {
  Create();
  ASSERT_NE(Next(), nullptr);
  const absl::Status status = host_->Done(absl::InternalError("no scene"));
  EXPECT_TRUE(absl::StrContains(status.message(), "no scene")) << status;
  EXPECT_NE(access(RegionPath(name_).c_str(), F_OK), 0);
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(EngineHostTickedTest, DoneReportsThatTheNameIsTaken) {
  Create();
  const std::unique_ptr<EngineHost> first = std::move(host_);
  const EngineWork* const work = first->Next(Deadline::Now());
  ASSERT_NE(work, nullptr);
  Create();
  ASSERT_NE(Next(), nullptr);
  EXPECT_TRUE(host_->Done(absl::OkStatus()).ok());
  EXPECT_EQ(CodeOf(first->Done(absl::OkStatus())), ErrorCode::kAlreadyAttached);
}

TEST_F(EngineHostTickedTest, AStepTakesAsManyTicksAsTheEngineNeeds) {
  Open();
  for (int step = 1; step <= 2; ++step) {
    client_->Send();
    const EngineWork* const work = Next();
    ASSERT_NE(work, nullptr);
    EXPECT_TRUE(work->resets.empty());
    EXPECT_EQ(work->steps.size(), kEnvs);
    for (int tick = 0; tick < 10; ++tick) {
      EXPECT_EQ(Next(), nullptr);
      EXPECT_EQ(Result(), ErrorCode::kStepTimeout);
    }
    Do(work);
    EXPECT_EQ(Result(), ErrorCode::kOk);
    EXPECT_EQ(Observation(1), step);
  }
}

TEST_F(EngineHostTickedTest, AnAutoresetIsFurtherWorkOfTheExchange) {
  Open();
  for (float step = 1; step < kEpisode; ++step) {
    client_->Send();
    DoAll(Next());
    EXPECT_EQ(Result(), ErrorCode::kOk);
  }
  client_->Send();
  Do(Next());
  EXPECT_EQ(Result(), ErrorCode::kStepTimeout);
  const EngineWork* const work = Next();
  ASSERT_NE(work, nullptr);
  EXPECT_TRUE(work->steps.empty());
  EXPECT_EQ(work->resets.size(), kEnvs);
  Do(work);
  EXPECT_EQ(Result(), ErrorCode::kOk);
  EXPECT_EQ(Observation(0), 0);
  EXPECT_EQ(client_->side().arrays().final_obs[0], kEpisode);
  EXPECT_EQ(client_->side().arrays().dones[0], 1);
}

TEST_F(EngineHostTickedTest, AFailureReachesTheClientAndTheHostServesOn) {
  Open();
  client_->Send();
  ASSERT_NE(Next(), nullptr);
  EXPECT_TRUE(host_->Done(absl::InternalError("the level unloaded")).ok());
  const ErrorCode code = Result();
  EXPECT_EQ(code, ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(client_->side().Explain(code).message(),
                                "the level unloaded"));
  client_->Send();
  Do(Next());
  EXPECT_EQ(Result(), ErrorCode::kOk);
}

TEST_F(EngineHostTickedTest, DoneWithoutWorkIsRefused) {
  Open();
  EXPECT_EQ(CodeOf(host_->Done(absl::OkStatus())), ErrorCode::kInvalidArgument);
  client_->Send();
  Do(Next());
  const absl::Status twice = host_->Done(absl::OkStatus());
  EXPECT_EQ(CodeOf(twice), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(twice.message(), "call Next first")) << twice;
  EXPECT_EQ(Result(), ErrorCode::kOk);
}

TEST_F(EngineHostTickedTest, DuringAStepOnlyCallsWithoutTheEngineAreAnswered) {
  Open();
  client_->Send();
  const EngineWork* const work = Next();
  client_->Call<rpc::GetServicesRequestT>(rpc::MethodId::GetServices, 1);
  client_->Call<rpc::GetSimulationModeRequestT>(
      rpc::MethodId::GetSimulationMode, 2);
  client_->Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 3);
  client_->Call<rpc::GetServicesRequestT>(rpc::MethodId::GetServices, 4);
  for (int tick = 0; tick < 10; ++tick) EXPECT_EQ(Next(), nullptr);
  EXPECT_EQ(NextAnswer(), 1u);
  EXPECT_EQ(NextAnswer(), 2u);
  EXPECT_EQ(NextAnswer(), 0u);
  Do(work);
  EXPECT_EQ(NextAnswer(), 3u);
  EXPECT_EQ(NextAnswer(), 4u);
}

TEST_F(EngineHostTickedTest, APauseDuringAStepHoldsTheNextExchange) {
  Open();
  client_->Send();
  const EngineWork* const work = Next();
  CallSetPaused(1, true);
  EXPECT_EQ(Next(), nullptr);
  EXPECT_EQ(NextAnswer(), 1u);
  Do(work);
  EXPECT_EQ(Result(), ErrorCode::kOk);
  client_->Send();
  EXPECT_EQ(Next(), nullptr);
  CallSetPaused(2, false);
  Do(Next());
  EXPECT_EQ(Result(), ErrorCode::kOk);
  EXPECT_EQ(Observation(0), 2);
}

TEST_F(EngineHostTickedTest, SingleStepsAreWork) {
  Open();
  CallSetPaused(1, true);
  rpc::SingleStepRequestT request;
  request.steps = 2;
  client_->Call(rpc::MethodId::SingleStep, 2, request);
  const EngineWork* const work = Next();
  ASSERT_NE(work, nullptr);
  EXPECT_EQ(work->steps.size(), kEnvs);
  EXPECT_EQ(NextAnswer(), 1u);
  EXPECT_EQ(NextAnswer(), 0u);
  DoAll(work);
  EXPECT_EQ(NextAnswer(), 2u);
}

TEST_F(EngineHostTickedTest, APauseDuringASingleStepCountsTheStepInProgress) {
  for (const bool paused : {true, false}) {
    SCOPED_TRACE(paused);
    host_.reset();
    client_.reset();
    Open();
    CallSetPaused(1, true);
    rpc::SingleStepRequestT request;
    request.steps = 5;
    client_->Call(rpc::MethodId::SingleStep, 2, request);
    Do(Next());
    const EngineWork* const work = Next();
    ASSERT_NE(work, nullptr);
    CallSetPaused(3, paused);
    EXPECT_EQ(Next(), nullptr);
    EXPECT_EQ(NextAnswer(), 1u);
    EXPECT_EQ(NextAnswer(), 3u);
    EXPECT_EQ(NextAnswer(), 0u);
    Do(work);
    EXPECT_EQ(Next(), nullptr);
    const rpc::EnvelopeT answer = client_->Await();
    EXPECT_EQ(answer.correlation_id, 2u);
    ASSERT_NE(answer.payload.AsSingleStepResponse(), nullptr);
    EXPECT_EQ(answer.payload.AsSingleStepResponse()->steps, 2u);
  }
}

TEST_F(EngineHostTickedTest, AClientThatLeavesDuringAResetByCallIsNoticed) {
  Open();
  client_->Call<rpc::ResetAgentRequestT>(rpc::MethodId::ResetAgent, 1);
  const EngineWork* work = Next();
  ASSERT_NE(work, nullptr);
  client_.reset();
  EXPECT_EQ(Next(), nullptr);
  Do(work);
  for (work = nullptr; work == nullptr;) work = host_->Next(Deadline::After(1));
  EXPECT_EQ(work->resets.size(), kEnvs);  // of the client that left
  Do(work);
}

TEST_F(EngineHostTickedTest, AResetByCallWaitsForTheStep) {
  Open();
  client_->Send();
  const EngineWork* const work = Next();
  client_->Call<rpc::ResetAgentRequestT>(rpc::MethodId::ResetAgent, 1);
  EXPECT_EQ(Next(), nullptr);
  Do(work);
  const EngineWork* const reset = Next();
  ASSERT_NE(reset, nullptr);
  EXPECT_EQ(reset->resets.size(), 1u);
  Do(reset);
  EXPECT_EQ(NextAnswer(), 1u);
}

TEST_F(EngineHostTickedTest, AResetByCallIsAnsweredWhenItIsDone) {
  Open();
  rpc::ResetAgentRequestT request;
  request.env_ids = {1};
  request.seed = 7;
  client_->Call(rpc::MethodId::ResetAgent, 1, request);
  client_->Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 2);
  const EngineWork* const work = Next();
  ASSERT_NE(work, nullptr);
  ASSERT_EQ(work->resets.size(), 1u);
  EXPECT_EQ(work->resets[0].env, 1u);
  EXPECT_EQ(work->resets[0].seed, 8u);
  client_->Send();  // an exchange waits as well
  EXPECT_EQ(Next(), nullptr);
  EXPECT_EQ(NextAnswer(), 0u);
  Do(work);
  Do(Next());
  EXPECT_EQ(Result(), ErrorCode::kOk);
  EXPECT_EQ(NextAnswer(), 1u);
  EXPECT_EQ(NextAnswer(), 2u);
}

TEST_F(EngineHostTickedTest, RealTimeStepsAreWorkThatExchangesWaitFor) {
  Open(rpc::SimulationMode::REALTIME);
  const EngineWork* work = nullptr;
  while (work == nullptr) work = host_->Next(Deadline::After(1));
  EXPECT_EQ(work->steps.size(), kEnvs);
  client_->Send();
  EXPECT_EQ(Next(), nullptr);
  Do(work);
  ErrorCode code = Result();
  EXPECT_EQ(code, ErrorCode::kStepTimeout);
  for (; code == ErrorCode::kStepTimeout; code = Result()) {
    work = host_->Next(Deadline::After(1));
    if (work != nullptr) Do(work);
  }
  EXPECT_EQ(code, ErrorCode::kOk);
  // Of the step of the clock, and of the exchange.
  EXPECT_GE(client_->side().arrays().rewards[0], 2);
}

TEST_F(EngineHostTickedTest, AClientThatLeavesDuringAStepIsNoticedAfterIt) {
  Open();
  client_->Send();
  const EngineWork* const work = Next();
  client_.reset();
  EXPECT_EQ(Next(), nullptr);
  Do(work);
  const EngineWork* reset = nullptr;
  while (reset == nullptr) reset = host_->Next(Deadline::After(1));
  EXPECT_EQ(reset->resets.size(), kEnvs);
  EXPECT_EQ(reset->resets[0].seed, std::nullopt);
}

TEST_F(EngineHostTickedTest, AStopDuringAStepIsSeenAndAnEndedHostIsGone) {
  Open();
  client_->Send();
  ASSERT_NE(Next(), nullptr);
  EXPECT_FALSE(host_->StopRequested());
  host_->RequestStop();
  EXPECT_TRUE(host_->StopRequested());
  EXPECT_EQ(host_->Next(Deadline::Infinite()), nullptr);
  host_.reset();
  EXPECT_EQ(client_->side().Recv(Deadline::Infinite()), ErrorCode::kPeerGone);
  client_.reset();
}

// The engine's loop has no pace, and needs three of its ticks for a step.
TEST_F(EngineHostTickedTest, EachOfManyStepsIsDoneOnce) {
  constexpr int kSteps = 100'000;
  Open();
  std::atomic<bool> ended{false};
  std::thread loop([&] {
    const EngineWork* work = nullptr;
    int ticks = 0;
    // relaxed: the flag carries no other data; join orders the rest.
    while (!ended.load(std::memory_order_relaxed)) {
      if (work == nullptr) {
        work = host_->Next(Deadline::After(0.001));
        ticks = 0;
      } else if (++ticks == 3) {
        Do(work);
        work = nullptr;
      } else {
        EXPECT_EQ(host_->Next(Deadline::After(1)), nullptr);
      }
    }
  });
  for (int step = 1; step <= kSteps; ++step) {
    const auto in_episode =
        static_cast<float>(step % static_cast<int>(kEpisode));
    if (client_->Step() != in_episode) {  // SAME_STEP: 0 at the end
      ADD_FAILURE() << "step " << step;
      break;
    }
  }
  // relaxed: as above.
  ended.store(true, std::memory_order_relaxed);
  loop.join();
  EXPECT_EQ(engine_.all_steps(), kSteps * kEnvs);
}

TEST_F(EngineHostTickedTest, NextWaitsForTheStopAndForTheDeadline) {
  Open();
  EXPECT_EQ(host_->Next(Deadline::After(0.001)), nullptr);
  host_->RequestStop();
  EXPECT_EQ(host_->Next(Deadline::Infinite()), nullptr);
}

}  // namespace
}  // namespace tandem

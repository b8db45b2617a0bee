// Attendants of a hosted engine: beside a client that steps, before one comes,
// and after it has left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
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
#include "engine_adapter/host/testing/counting_engine.h"
#include "engine_adapter/host/testing/panel.h"
#include "schema/layout/attendant_slot.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attendant_side.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

class EngineHostAttendantsTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(600);
    auto host = EngineHost::Create(&engine_, {.name = name_});
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    host_->Start();
  }
  void TearDown() override {
    host_.reset();
    alarm(0);
  }
  // Forks a process that attaches, executes `act` and waits to be killed.
  template <typename Act>
  pid_t PanelProcess(Act act) {
    std::array<int, 2> pipe_ends;
    EXPECT_EQ(pipe(pipe_ends.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
      Panel panel(name_, "killed");
      act(panel);
      (void)!write(pipe_ends[1], "x", 1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return child;
  }
  static void Kill(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }

  const std::string name_ = UniqueRegionName("host_attendants");
  CountingEngine engine_;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(EngineHostAttendantsTest, AnAttendantCallsWithoutAClient) {
  Panel panel(name_);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(panel.GetJoints().ok());
  EXPECT_TRUE(
      panel.Call<rpc::ResetAgentRequestT>(rpc::MethodId::ResetAgent).ok());
}

TEST_F(EngineHostAttendantsTest, AttendantsCallBesideAClientThatSteps) {
  constexpr int kCalls = 300;
  CallingClient client(name_);
  std::atomic<int> calling{4};
  std::vector<std::thread> panels;
  for (int i = 0; i < 4; ++i) {
    panels.emplace_back([&] {
      Panel panel(name_);
      for (int call = 0; call < kCalls; ++call) {
        EXPECT_TRUE(panel.GetJoints().ok());
        const absl::Status refused =
            panel.Call<rpc::ResetAgentRequestT>(rpc::MethodId::ResetAgent)
                .status();
        EXPECT_EQ(CodeOf(refused), ErrorCode::kAlreadyAttached) << refused;
      }
      --calling;
    });
  }
  for (float steps = 1; calling > 0; ++steps) {
    ASSERT_EQ(client.Step(), steps);
  }
  for (std::thread& panel : panels) panel.join();
}

TEST_F(EngineHostAttendantsTest, TheFifthIsRefusedWithTheNamesOfTheOthers) {
  std::vector<std::unique_ptr<Panel>> panels;
  for (size_t i = 0; i < kAttendantSlots; ++i) {
    panels.push_back(std::make_unique<Panel>(name_, "page"));
  }
  const absl::Status status = AttendantSide::Attach(name_, {}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kAlreadyAttached);
  EXPECT_TRUE(absl::StrContains(status.message(), "'page' (pid ")) << status;
  panels.erase(panels.begin() + 2);
  Panel another(name_);
  EXPECT_TRUE(another.GetJoints().ok());
  EXPECT_TRUE(panels.front()->GetJoints().ok());
}

TEST_F(EngineHostAttendantsTest, AttendantsAndTheirStreamsStayAcrossClients) {
  Panel panel(name_);
  rpc::GetJointStateRequestT request;
  request.target_fps = 1000;
  const uint64_t stream =
      panel.calls()
          .Open(Panel::Packed(rpc::MethodId::StreamJointState, request))
          .value();
  for (int i = 0; i < 3; ++i) {
    CallingClient client(name_);
    (void)client.Step();
    const auto item = panel.calls().Next(stream, Deadline::After(20));
    ASSERT_TRUE(item.ok()) << item.status();
    ASSERT_TRUE(item->has_value());
  }
  EXPECT_TRUE(panel.GetJoints().ok());
}

TEST_F(EngineHostAttendantsTest, APauseOutlivesTheClientButNotItsAttendant) {
  auto panel = std::make_unique<Panel>(name_);
  EXPECT_TRUE(panel->SetPaused(true).ok());
  { CallingClient first(name_); }
  CallingClient client(name_);
  client.Send();
  EXPECT_EQ(client.side().Recv(Deadline::Now()), ErrorCode::kStepTimeout);
  panel.reset();
  EXPECT_EQ(client.side().Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(EngineHostAttendantsTest, ThePauseOfAKilledAttendantEnds) {
  const pid_t child = PanelProcess(
      [](Panel& panel) { EXPECT_TRUE(panel.SetPaused(true).ok()); });
  CallingClient client(name_);
  client.Send();
  EXPECT_EQ(client.side().Recv(Deadline::Now()), ErrorCode::kStepTimeout);
  Kill(child);
  EXPECT_EQ(client.side().Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(EngineHostAttendantsTest, TheDeadlineDoesNotRunDuringThePause) {
  Panel panel(name_);
  EXPECT_TRUE(panel.SetPaused(true).ok());
  CallingClient client(name_);
  std::thread resume([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_TRUE(panel.SetPaused(false).ok());
  });
  client.Send();
  // Shorter than the pause.
  EXPECT_EQ(client.side().Recv(Deadline::After(2)), ErrorCode::kOk);
  resume.join();
}

TEST_F(EngineHostAttendantsTest, TheDeadlineDoesNotRunUntilADeathIsNoticed) {
  const pid_t child = PanelProcess(
      [](Panel& panel) { EXPECT_TRUE(panel.SetPaused(true).ok()); });
  CallingClient client(name_);
  std::thread killing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    Kill(child);
  });
  client.Send();
  EXPECT_EQ(client.side().Recv(Deadline::After(2)), ErrorCode::kOk);
  killing.join();
}

TEST_F(EngineHostAttendantsTest, AKilledAttendantsSlotIsFreeAgain) {
  for (int i = 0; i < 8; ++i) {
    Kill(PanelProcess(
        [](Panel& panel) { EXPECT_TRUE(panel.GetJoints().ok()); }));
    Panel next(name_);
    EXPECT_TRUE(next.GetJoints().ok());
  }
}

TEST_F(EngineHostAttendantsTest, AStoppedAttendantDelaysNobody) {
  const pid_t child = PanelProcess([](Panel& panel) {
    rpc::GetJointStateRequestT request;
    request.target_fps = 1000;
    EXPECT_TRUE(
        panel.calls()
            .Open(Panel::Packed(rpc::MethodId::StreamJointState, request))
            .ok());
  });
  kill(child, SIGSTOP);
  CallingClient client(name_);
  Panel panel(name_);
  for (float steps = 1; steps < 20'000; ++steps) {
    ASSERT_EQ(client.Step(), steps);
  }
  EXPECT_TRUE(panel.GetJoints().ok());
  Kill(child);
}

TEST_F(EngineHostAttendantsTest, AttendantsLearnThatTheEngineIsGone) {
  Panel panel(name_);
  host_.reset();
  const absl::Status status = panel.GetJoints();
  EXPECT_EQ(CodeOf(status), ErrorCode::kPeerGone) << status;
}

TEST_F(EngineHostAttendantsTest, WhateverAnAttendantWritesTheClientSteps) {
  Panel rogue(name_);
  CallingClient client(name_);
  const LrbcHeader& plan = rogue.side().plan();
  const std::shared_ptr<const RegionMapping>& mapping = client.side().mapping();
  uint32_t noise = 1;
  for (int round = 0; round < 2'000; ++round) {
    noise = noise * 1'664'525 + 1'013'904'223;
    auto* const words =
        mapping->At<SharedWord<uint32_t>>(AttendantSlotOffset(plan, 0));
    const size_t count =
        AttendantSlotBytes(plan.attendant_ring_size) / sizeof(uint32_t);
    // relaxed: noise.
    for (size_t i = 0; i < 16; ++i) {
      words[(noise + i * 97) % (i < 8 ? 128 : count)].store(
          noise >> i, std::memory_order_relaxed);
    }
    mapping->header()->attendant_bell.fetch_add(1, std::memory_order_relaxed);
    ASSERT_EQ(client.Step(), static_cast<float>(round + 1));
  }
  Panel honest(name_);
  EXPECT_TRUE(honest.GetJoints().ok());
}

TEST_F(EngineHostAttendantsTest, ALabelThatIsTooLongIsRefused) {
  const absl::Status status =
      AttendantSide::Attach(name_,
                            {.label = std::string(kMaxLabelBytes + 1, 'x')})
          .status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "at most 55 bytes, found 56"))
      << status;
}

}  // namespace
}  // namespace tandem

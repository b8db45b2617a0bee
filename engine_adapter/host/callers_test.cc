// The callers of an engine whose loop is the test's: it decides when the engine
// serves. The client and the attendants are other processes.
#include "engine_adapter/host/callers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "engine_adapter/host/testing/calling_client.h"
#include "engine_adapter/host/testing/counting_engine.h"
#include "engine_adapter/host/testing/panel.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

// Another process, which executes `act`, says "done" and then waits to be
// killed. A test ends it by Kill or by leaving its scope.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void(const OtherProcess&)>& act) {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(60);
    act(*this);
    Say();
    for (;;) pause();
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() {
    Kill();
    close(pipe_[0]);
    close(pipe_[1]);
  }

  // In the other process.
  void Say() const { (void)!write(pipe_[1], "x", 1); }
  // Whether it has said something since the last true answer.
  bool Said() const {
    pollfd end = {.fd = pipe_[0], .events = POLLIN, .revents = 0};
    char byte;
    return poll(&end, 1, 0) == 1 && read(pipe_[0], &byte, 1) == 1;
  }
  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  std::array<int, 2> pipe_;
  pid_t pid_ = 0;
};

class CallersTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);  // a hang is a failure
    callers_.emplace(
        RpcConfig(), &engine_, &simulation_, side_.get(), /*scene=*/nullptr,
        [this](absl::string_view line) { absl::StrAppend(&log_, line, "\n"); });
    ASSERT_TRUE(side_->Open().ok());
  }
  void TearDown() override { alarm(0); }

  // Handles the next event, as EngineHost does, except exchanges.
  EngineEvent ServeOnce() {
    const EngineEvent event = side_->Next(Deadline::After(0.001));
    switch (event) {
      case EngineEvent::kClientArrived:
        callers_->ClientLeft();
        simulation_.Restart();
        side_->AcknowledgeAttach(absl::OkStatus());
        callers_->ClientArrived();
        break;
      case EngineEvent::kClientLeft:
        callers_->ClientLeft();
        simulation_.Restart();
        break;
      case EngineEvent::kAttendants:
        callers_->ServeAttendants();
        break;
      case EngineEvent::kRpcs:
        callers_->Serve();
        break;
      default:
        if (!callers_->IsQuiet()) callers_->Serve();
        break;
    }
    return event;
  }
  // alarm is the watchdog.
  void ServeUntil(const std::function<bool()>& done) {
    while (!done()) (void)ServeOnce();
  }
  void ServeUntil(EngineEvent event) {
    while (ServeOnce() != event) {
    }
  }
  bool Logged(const std::string& line) const {
    return log_.find(line + "\n") != std::string::npos;
  }
  uint32_t shown_services() const {
    // relaxed: for observers.
    return side_->mapping()->header()->services.load(std::memory_order_relaxed);
  }

  static std::unique_ptr<EngineSide> CreateSide(const std::string& name,
                                                const EngineSchema& schema) {
    const RegionSpec spec = {.num_envs = schema.num_envs,
                             .obs_size = schema.obs_size,
                             .act_size = schema.act_size,
                             .task = schema.task,
                             .commands = true,
                             .attendants = true};
    return std::make_unique<EngineSide>(
        EngineSide::Create(name, spec, {}).value());
  }

  const std::string name_ = UniqueRegionName("callers");
  CountingEngine engine_;
  const std::unique_ptr<EngineSide> side_ = CreateSide(name_, engine_.schema());
  ExchangeRunner runner_{&side_->arrays()};
  Simulation simulation_{
      &engine_,
      side_.get(),
      &runner_,
      rpc::SimulationMode::FAST,
      [] {},
      [this](bool begun, size_t caller) { callers_->LogPause(begun, caller); }};
  std::string log_;
  std::optional<Callers> callers_;
};

TEST_F(CallersTest, ShowsTheServicesThatAnswer) {
  EXPECT_EQ(shown_services(), BitOf(Service::kAgent) | BitOf(Service::kScene) |
                                  BitOf(Service::kMujoco) |
                                  BitOf(Service::kTelemetry));
}

TEST_F(CallersTest, AnswersBesideAnExchangeAndNotAgainAfterIt) {
  const OtherProcess client([&](const OtherProcess& self) {
    CallingClient caller(name_);
    caller.Send();
    caller.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 1);
    if (caller.Await().correlation_id != 1) _exit(1);
    self.Say();  // although the step is pending
    if (caller.side().Recv(Deadline::After(50)) != ErrorCode::kOk) _exit(1);
  });
  ServeUntil(EngineEvent::kExchange);
  while (!client.Said()) callers_->ServeBesideExchange();
  side_->Publish();
  while (!client.Said()) EXPECT_NE(ServeOnce(), EngineEvent::kRpcs);
}

TEST_F(CallersTest, AdmitsAnAttendantBesideAnExchange) {
  const OtherProcess client([&](const OtherProcess&) {
    CallingClient caller(name_);
    caller.Send();
    if (caller.side().Recv(Deadline::After(50)) != ErrorCode::kOk) _exit(1);
  });
  ServeUntil(EngineEvent::kExchange);
  const OtherProcess attendant([&](const OtherProcess&) {
    if (!Panel(name_).GetJoints().ok()) _exit(1);
  });
  while (!attendant.Said()) callers_->ServeBesideExchange();
  side_->Publish();
  ServeUntil([&] { return client.Said(); });
}

TEST_F(CallersTest, LogsEachAttendantThatComesAndLeaves) {
  OtherProcess attendant(
      [&](const OtherProcess&) { const Panel panel(name_, "left panel"); });
  ServeUntil([&] { return attendant.Said(); });
  const std::string text =
      absl::StrCat("attendant 'left panel' (pid ", attendant.pid(), ")");
  ServeUntil([&] { return Logged(text + " left"); });
  EXPECT_EQ(log_, absl::StrCat(text, " attached\n", text, " left\n"));
}

TEST_F(CallersTest, LogsThePausesOfCallersByName) {
  OtherProcess attendant([&](const OtherProcess& self) {
    Panel panel(name_);
    if (!panel.SetPaused(true).ok()) _exit(1);
    self.Say();
    for (;;) pause();
  });
  ServeUntil([&] { return attendant.Said(); });
  const std::string text =
      absl::StrCat("attendant 'panel' (pid ", attendant.pid(), ")");
  EXPECT_TRUE(Logged("paused by " + text)) << log_;
  EXPECT_TRUE(simulation_.paused());
  attendant.Kill();
  ServeUntil([&] { return Logged("the pause of " + text + " has ended"); });
  EXPECT_FALSE(simulation_.paused());
}

TEST_F(CallersTest, AnAttendantFollowsAKilledOneThatWasNotMissed) {
  const auto serve = [&](const OtherProcess& self) {
    // The same slot each time: the lowest that is free.
    Panel panel(name_);
    for (int call = 0; call < 3; ++call) {
      if (!panel.GetJoints().ok()) _exit(1);
    }
    self.Say();
    for (;;) pause();
  };
  for (int round = 0; round < 5; ++round) {
    OtherProcess attendant(serve);
    ServeUntil([&] { return attendant.Said(); });
    attendant.Kill();  // the engine looks again only after the next one came
  }
}

TEST_F(CallersTest, RingsThatAreInvalidAreLoggedAndTheOthersAnswered) {
  const OtherProcess rogue([&](const OtherProcess& self) {
    Panel panel(name_, "rogue");
    self.Say();
    for (;;) pause();
  });
  ServeUntil([&] { return rogue.Said(); });
  const LrbcHeader& header = *side_->mapping()->header();
  // relaxed: as a hostile process may.
  side_->mapping()
      ->At<RingHeader>(
          AttendantSlotOffset(header, 0) +
          AttendantRingOffset(kToEngine, header.attendant_ring_size))
      ->write_pos.store(0xFFFFFFF1u, std::memory_order_relaxed);
  side_->PollAttendantsAgain();
  const std::string line =
      absl::StrCat("RPCs: the rings of attendant 'rogue' (pid ", rogue.pid(),
                   ") are invalid; none is answered");
  ServeUntil([&] { return Logged(line); });
  const OtherProcess honest([&](const OtherProcess&) {
    if (!Panel(name_, "honest").GetJoints().ok()) _exit(1);
  });
  ServeUntil([&] { return honest.Said(); });
  EXPECT_EQ(log_.find(line), log_.rfind(line));  // once
}

TEST_F(CallersTest, IsQuietUnlessAStreamIsDue) {
  EXPECT_TRUE(callers_->IsQuiet());
  EXPECT_EQ(callers_->DueNs(), std::nullopt);
  OtherProcess client([&](const OtherProcess& self) {
    CallingClient caller(name_);
    rpc::GetJointStateRequestT stream;
    stream.target_fps = 1;
    caller.Call(rpc::MethodId::StreamJointState, 1, stream);
    if (caller.Await().correlation_id != 1) _exit(1);
    self.Say();
    for (;;) pause();
  });
  ServeUntil([&] { return client.Said(); });
  EXPECT_FALSE(callers_->IsQuiet());
  // The next item at the latest.
  ASSERT_TRUE(callers_->DueNs().has_value());
  EXPECT_LE(*callers_->DueNs(), MonotonicNanos() + 1'000'000'000);
  client.Kill();
  ServeUntil(EngineEvent::kClientLeft);
  EXPECT_TRUE(callers_->IsQuiet());
  EXPECT_EQ(callers_->DueNs(), std::nullopt);
}

TEST_F(CallersTest, AnotherThreadSwitchesAServiceWhileNextSleeps) {
  std::atomic<bool> ended{false};
  std::thread other([&] {
    EXPECT_TRUE(callers_->EnableLater(Service::kMujoco, false).ok());
    EXPECT_EQ(CodeOf(callers_->EnableLater(Service::kCamera, true)),
              ErrorCode::kUnsupported);
    ended = true;
  });
  ServeUntil([&] {
    return ended && (shown_services() & BitOf(Service::kMujoco)) == 0;
  });
  other.join();
  const OtherProcess attendant([&](const OtherProcess&) {
    const absl::Status status = Panel(name_).GetJoints();
    if (CodeOf(status) != ErrorCode::kUnsupported) _exit(1);
  });
  ServeUntil([&] { return attendant.Said(); });
}

}  // namespace
}  // namespace tandem

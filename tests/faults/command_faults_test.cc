// Calls beside steps, between real processes. Tests kill or freeze either side
// at instructions spread over a complete call. Other tests use readers that are
// stopped, dead, or never read.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/host/engine_host.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/client_side.h"

namespace tandem {
namespace {

class StillEngine final : public Engine {
 public:
  bool has_stepped() const { return has_stepped_; }
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest>, const ResetIo&) override {
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t>, const StepIo&) override {
    has_stepped_ = true;
    return absl::OkStatus();
  }

 private:
  bool has_stepped_ = false;
  EngineSchema schema_ = {
      .task = "still", .num_envs = 1, .obs_size = 1, .act_size = 1};
};

// A call of about `bytes`; the engine's error reply repeats such a long name.
rpc::EnvelopeT Schema(size_t bytes = 0) {
  rpc::GetAgentSchemaRequestT request;
  request.agent_name = std::string(bytes, 'n');
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetAgentSchema;
  call.payload.Set(std::move(request));
  return call;
}

// A client and its calls.
struct Caller {
  explicit Caller(const std::string& name)
      : side(ClientSide::Attach(name, {}).value()),
        rpc(RpcClient::Create(&side, {}).value()) {}

  ErrorCode Call(Deadline deadline = Deadline::After(20), size_t bytes = 0) {
    return CodeOf(rpc->Call(Schema(bytes), deadline).status());
  }
  ErrorCode Step() {
    const std::array<float, 1> actions = {0};
    return side.Step(actions, 20);
  }

  ClientSide side;
  std::unique_ptr<RpcClient> rpc;
};

class CommandFaults : public FaultTest {
 protected:
  static constexpr int kDraws = 60;

  std::unique_ptr<EngineHost> MakeHost() {
    auto host = EngineHost::Create(
        &engine_, {.name = name_, .rpc_ring_bytes = 64 * 1024});
    if (!host.ok()) _exit(1);
    return *std::move(host);
  }
  // Serves until the test kills it.
  std::unique_ptr<Victim> StartHost() {
    auto host = std::make_unique<Victim>([this] {
      const std::unique_ptr<EngineHost> serving = MakeHost();
      Victim::Mark();
      serving->Run();
    });
    EXPECT_TRUE(host->RunToMark());
    host->Release();
    return host;
  }
  // Serves a client up to its first step, and holds there.
  std::unique_ptr<Victim> StartHeldHost() {
    auto host = std::make_unique<Victim>([this] {
      const std::unique_ptr<EngineHost> serving = MakeHost();
      Victim::Mark();
      while (!engine_.has_stepped()) serving->Poll();
      Victim::Mark();
      for (;;) serving->Poll();
    });
    EXPECT_TRUE(host->RunToMark());
    return host;
  }
  // Such a host, its client, and a call of the client that the host has not
  // read.
  struct HeldCall {
    std::unique_ptr<Victim> host;
    std::unique_ptr<Caller> caller;
    uint64_t id;
  };
  HeldCall StartHeldCall() {
    std::unique_ptr<Victim> host = StartHeldHost();
    host->RunOn();
    auto caller = std::make_unique<Caller>(name_);
    EXPECT_EQ(caller->Call(), ErrorCode::kOk);
    EXPECT_EQ(caller->Step(), ErrorCode::kOk);
    EXPECT_TRUE(host->AwaitMark());
    const uint64_t id = caller->rpc->Open(Schema()).value();
    return {std::move(host), std::move(caller), id};
  }
  // The host's instructions from the hold until shortly after its answer.
  int InstructionsOfACall() {
    const HeldCall held = StartHeldCall();
    const LrbcHeader* const header = held.caller->side.mapping()->header();
    const auto* const answers = reinterpret_cast<const RingHeader*>(
        reinterpret_cast<const std::byte*>(header) + header->cmd_s2c_offset);
    const auto written = [&] {
      return answers->write_pos.load(std::memory_order_acquire);
    };
    int count = 0;
    for (const uint32_t before = written(); written() == before; ++count) {
      if (!held.host->Advance(Victim::kInstruction)) break;
    }
    return count + 300;
  }
  // The held call's result; kStepTimeout if none arrives in time.
  static ErrorCode Outcome(const HeldCall& held, Deadline deadline) {
    return CodeOf(held.caller->rpc->Next(held.id, deadline).status());
  }
  static void Advance(Victim& victim, int instructions) {
    for (int i = 0; i < instructions; ++i) {
      if (!victim.Advance(Victim::kInstruction)) return;
    }
  }
  void ExpectANewCallerIsServed() {
    Caller caller(name_);
    EXPECT_EQ(caller.Call(), ErrorCode::kOk);
    EXPECT_EQ(caller.Step(), ErrorCode::kOk);
    EXPECT_EQ(caller.Call(), ErrorCode::kOk);
  }
  static uint64_t ResidentBytes(pid_t pid) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
    uint64_t total = 0;
    uint64_t resident = 0;
    file >> total >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }

  StillEngine engine_;
};

TEST_F(CommandFaults, AnEngineKilledInACallHasAnsweredOrIsGone) {
  const int length = InstructionsOfACall();
  int answered = 0;
  for (int draw = 0; draw < kDraws && !HasFailure(); ++draw) {
    const HeldCall held = StartHeldCall();
    Advance(*held.host, length * draw / kDraws);
    held.host->Kill();
    const ErrorCode code = Outcome(held, Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++answered;
    } else {
      EXPECT_EQ(code, ErrorCode::kPeerGone);
    }
    const std::unique_ptr<Victim> next = StartHost();
    held.caller->rpc.reset();
    const absl::Status status = held.caller->side.Reconnect(20);
    ASSERT_TRUE(status.ok()) << status;
    held.caller->rpc = RpcClient::Create(&held.caller->side, {}).value();
    EXPECT_EQ(held.caller->Call(), ErrorCode::kOk);
  }
  std::printf("killed the engine at %d of %d instructions; %d answered\n",
              kDraws, length, answered);
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, kDraws);
}

TEST_F(CommandFaults, AnEngineFrozenInACallTimesOutAndThenAnswers) {
  const int length = InstructionsOfACall();
  int late = 0;
  for (int draw = 0; draw < kDraws / 3 && !HasFailure(); ++draw) {
    const HeldCall held = StartHeldCall();
    Advance(*held.host, length * draw / (kDraws / 3));
    const ErrorCode code = Outcome(held, Deadline::After(0.01));
    held.host->Release();
    if (code != ErrorCode::kOk) {
      ++late;
      EXPECT_EQ(code, ErrorCode::kStepTimeout);
      EXPECT_EQ(Outcome(held, Deadline::After(20)), ErrorCode::kOk);
    }
    EXPECT_EQ(held.caller->Call(), ErrorCode::kOk);
    EXPECT_EQ(held.caller->Step(), ErrorCode::kOk);
  }
  std::printf("froze the engine at %d of %d instructions; %d were late\n",
              kDraws / 3, length, late);
  EXPECT_GT(late, 0);
}

TEST_F(CommandFaults, AClientKilledInACallIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> host = StartHost();
  constexpr int kInstructions = 6000;  // It then waits for its answer.
  for (int draw = 0; draw < kDraws && !HasFailure(); ++draw) {
    Victim client([this] {
      Caller caller(name_);
      if (caller.Call() != ErrorCode::kOk) _exit(1);
      Victim::Mark();
      if (caller.Call() != ErrorCode::kOk) _exit(2);
    });
    ASSERT_TRUE(client.RunToMark());
    Advance(client, kInstructions * draw / kDraws);
    client.Kill();
    ExpectANewCallerIsServed();
  }
}

TEST_F(CommandFaults, ClientThatReadsNothingCanStep) {
  const std::unique_ptr<Victim> host = StartHost();
  const uint64_t before = ResidentBytes(host->pid());
  Caller caller(name_);
  EnvelopeWriter calls(caller.side.RpcRingWriter().value());
  // Until the engine has accepted no message for 100 steps.
  uint64_t id = 0;
  for (int full = 0; full < 100; ++full) {
    ASSERT_EQ(caller.Step(), ErrorCode::kOk);
    rpc::EnvelopeT call = Schema();
    while (calls.Pump() == ErrorCode::kOk) {
      call.correlation_id = ++id;
      (void)calls.Post(call);
      full = 0;
    }
  }
  std::printf("%d calls were taken\n", static_cast<int>(id));
  EXPECT_GT(id, 100u);
  EXPECT_LT(ResidentBytes(host->pid()), before + 256 * 1024 * 1024);
  for (int step = 0; step < 200; ++step) {
    ASSERT_EQ(caller.Step(), ErrorCode::kOk);
  }
  // The client reads now: no answer was lost.
  EnvelopeReader answers(caller.side.RpcRingReader().value(), {});
  for (uint64_t next = 1; next <= id;) {
    (void)calls.Pump();
    if (answers.Next() != EnvelopeReader::Got::kEnvelope) continue;
    ASSERT_EQ(answers.envelope().correlation_id(), next++);
  }
}

TEST_F(CommandFaults, StoppedClientWithFullRingKeepsItsLock) {
  const std::unique_ptr<Victim> host = StartHost();
  Victim client([this] {
    Caller caller(name_);
    EnvelopeWriter calls(caller.side.RpcRingWriter().value());
    rpc::EnvelopeT call = Schema(1000);
    for (int i = 0; i < 10'000; ++i) {
      call.correlation_id = static_cast<uint64_t>(i) + 1;
      if (calls.Post(call) == ErrorCode::kRingFull) break;
    }
    Victim::Mark();
  });
  ASSERT_TRUE(client.RunToMark());
  EXPECT_EQ(CodeOf(ClientSide::Attach(name_, {.timeout_secs = 0}).status()),
            ErrorCode::kAlreadyAttached);
  client.Kill();
  ExpectANewCallerIsServed();
}

TEST_F(CommandFaults, AnEngineStoppedWithItsRingFullTimesOutThenIsGone) {
  const std::unique_ptr<Victim> host = StartHost();
  Caller caller(name_);
  EXPECT_EQ(caller.Call(), ErrorCode::kOk);
  kill(host->pid(), SIGSTOP);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(caller.Call(Deadline::After(0.01), 30'000),
              ErrorCode::kStepTimeout);
  }
  kill(host->pid(), SIGCONT);
  EXPECT_EQ(caller.Call(), ErrorCode::kOk);  // It follows the twenty calls.
  kill(host->pid(), SIGSTOP);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(caller.Call(Deadline::After(0.01), 30'000),
              ErrorCode::kStepTimeout);
  }
  host->Kill();
  EXPECT_EQ(caller.Call(Deadline::Infinite(), 30'000), ErrorCode::kPeerGone);
  EXPECT_EQ(caller.Call(Deadline::Infinite()), ErrorCode::kPeerGone);
}

}  // namespace
}  // namespace tandem

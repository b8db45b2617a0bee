// Calls beside steps, between real processes. Tests kill or freeze either side
// at instructions spread over a complete call. Other tests use readers that are
// stopped, dead, or never read.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/ring_header.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/faults/host_fault_test.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/rpc_ends.h"

namespace tandem {
namespace {

class CommandFaults : public HostFaultTest {
 protected:
  static constexpr int kDraws = 60;

  // A held host, its client, and a call of the client that the host has not
  // read.
  struct HeldCall {
    std::unique_ptr<Victim> host;
    std::unique_ptr<Caller> caller;
    uint64_t id;
  };
  HeldCall StartHeldCall() {
    std::unique_ptr<Victim> host = StartHostToHold();
    auto caller = std::make_unique<Caller>(name_);
    EXPECT_EQ(caller->Call(), ErrorCode::kOk);
    EXPECT_EQ(caller->Step(), ErrorCode::kOk);
    Hold(*host);
    const uint64_t id = caller->rpc->Open(SchemaCall()).value();
    return {std::move(host), std::move(caller), id};
  }
  // The host's instructions from the hold until shortly after its answer.
  int InstructionsOfACall() {
    const HeldCall held = StartHeldCall();
    const ClientSide& side = held.caller->side;
    const auto* const answers =
        side.mapping()->At<RingHeader>(side.plan().cmd_s2c_offset);
    const auto written = [&] {
      return answers->write_pos.load(std::memory_order_acquire);
    };
    const uint32_t before = written();
    return InstructionsUntil(*held.host, [&] { return written() != before; });
  }
  // The held call's result; kStepTimeout if none arrives in time.
  static ErrorCode Outcome(const HeldCall& held, Deadline deadline) {
    return CodeOf(held.caller->rpc->Next(held.id, deadline).status());
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
};

TEST_F(CommandFaults, AnEngineKilledInACallHasAnsweredOrIsGone) {
  const int length = InstructionsOfACall();
  int answered = 0;
  const int places = AtPlaces(kDraws, length, [&](int place) {
    const HeldCall held = StartHeldCall();
    held.host->Advance(Victim::kInstruction, place);
    held.host->Kill();
    const ErrorCode code = Outcome(held, Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++answered;
    } else {
      EXPECT_EQ(code, ErrorCode::kPeerGone);
    }
    const std::unique_ptr<Victim> next = StartHost();
    const absl::Status status = held.caller->Reconnect();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(held.caller->Call(), ErrorCode::kOk);
  });
  std::printf("killed the engine at %d of %d instructions; %d answered\n",
              places, length, answered);
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, places);
}

TEST_F(CommandFaults, AnEngineFrozenInACallTimesOutAndThenAnswers) {
  const int length = InstructionsOfACall();
  int late = 0;
  const int places = AtPlaces(kDraws / 3, length, [&](int place) {
    const HeldCall held = StartHeldCall();
    held.host->Advance(Victim::kInstruction, place);
    const ErrorCode code = Outcome(held, Deadline::After(0.01));
    held.host->Release();
    if (code != ErrorCode::kOk) {
      ++late;
      EXPECT_EQ(code, ErrorCode::kStepTimeout);
      EXPECT_EQ(Outcome(held, Deadline::After(20)), ErrorCode::kOk);
    }
    EXPECT_EQ(held.caller->Call(), ErrorCode::kOk);
    EXPECT_EQ(held.caller->Step(), ErrorCode::kOk);
  });
  std::printf("froze the engine at %d of %d instructions; %d were late\n",
              places, length, late);
  EXPECT_GT(late, 0);
}

TEST_F(CommandFaults, AClientKilledInACallIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> host = StartHost();
  constexpr int kInstructions = 6000;  // It then waits for its answer.
  AtPlaces(kDraws, kInstructions, [&](int place) {
    Victim client([this] {
      Caller caller(name_);
      if (caller.Call() != ErrorCode::kOk) _exit(1);
      Victim::Mark();
      if (caller.Call() != ErrorCode::kOk) _exit(2);
    });
    ASSERT_TRUE(client.RunToMark());
    client.Advance(Victim::kInstruction, place);
    client.Kill();
    ExpectANewCallerIsServed();
  });
}

TEST_F(CommandFaults, ClientThatReadsNothingCanStep) {
  const std::unique_ptr<Victim> host = StartHost();
  const uint64_t before = ResidentBytes(host->pid());
  Caller caller(name_);
  EnvelopeWriter calls(RpcEnds::Writer(&caller.side).value());
  // Until the engine has accepted no message for 100 steps.
  uint64_t id = 0;
  for (int full = 0; full < 100; ++full) {
    ASSERT_EQ(caller.Step(), ErrorCode::kOk);
    rpc::EnvelopeT call = SchemaCall();
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
  EnvelopeReader answers(RpcEnds::Reader(&caller.side).value(), {});
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
    EnvelopeWriter calls(RpcEnds::Writer(&caller.side).value());
    rpc::EnvelopeT call = SchemaCall(1000);
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

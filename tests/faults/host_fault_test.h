// HostFaultTest: the common fixture of the tests that kill or freeze an
// EngineHost, its client, or its attendants.
//
// Data flow: Caller, a client, and Panel, an attendant -> calls and steps -> an
// EngineHost in a Victim.
//
//   class CommandFaults : public HostFaultTest {};
//   const std::unique_ptr<Victim> host = StartHost();
//   Caller caller(name_);
//   EXPECT_EQ(caller.Call(), ErrorCode::kOk);

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine_host.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/end_to_end/counting_engine.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/attendant_side.h"
#include "transport/client_side.h"
#include "transport/rpc_client.h"

namespace tandem {

// A call of about `bytes`; the engine's error reply repeats such a long name.
inline rpc::EnvelopeT SchemaCall(size_t bytes = 0) {
  rpc::GetAgentSchemaRequestT request;
  request.agent_name = std::string(bytes, 'n');
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetAgentSchema;
  call.payload.Set(std::move(request));
  return call;
}

inline rpc::EnvelopeT PauseCall() {
  rpc::SetPausedRequestT request;
  request.paused = true;
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::SetPaused;
  call.payload.Set(std::move(request));
  return call;
}

// A client, its calls and its steps.
struct Caller {
  explicit Caller(const std::string& name)
      : side(ClientSide::Attach(name, {}).value()),
        rpc(RpcClient::Create(&side, {}).value()) {}

  ErrorCode Call(Deadline deadline = Deadline::After(20), size_t bytes = 0) {
    return CodeOf(rpc->Call(SchemaCall(bytes), deadline).status());
  }
  ErrorCode Step(Deadline deadline = Deadline::After(20)) {
    const std::array<float, 1> actions = {++action};
    const ErrorCode code = side.Send(actions);
    return code == ErrorCode::kOk ? Recv(deadline) : code;
  }
  // Checks that the results are those of the last Step's action.
  ErrorCode Recv(Deadline deadline = Deadline::After(20)) {
    const ErrorCode code = side.Recv(deadline);
    if (code == ErrorCode::kOk) {
      EXPECT_EQ(side.arrays().obs[CountingEngine::kEcho], action);
    }
    return code;
  }
  absl::Status Reconnect() {
    rpc.reset();
    absl::Status status = side.Reconnect(20);
    if (status.ok()) rpc = RpcClient::Create(&side, {}).value();
    return status;
  }

  ClientSide side;
  std::unique_ptr<RpcClient> rpc;
  float action = 0;
};

// An attendant and its calls.
struct Panel {
  explicit Panel(const std::string& name)
      : side(AttendantSide::Attach(name, {.label = "panel"}).value()),
        rpc(RpcClient::Create(side.get(), {}).value()) {}

  ErrorCode Call() {
    return CodeOf(rpc->Call(SchemaCall(), Deadline::After(20)).status());
  }
  ErrorCode Pause() {
    return CodeOf(rpc->Call(PauseCall(), Deadline::After(20)).status());
  }

  std::unique_ptr<AttendantSide> side;
  std::unique_ptr<RpcClient> rpc;
};

// The engine's observations echo the client's actions.
class HostFaultTest : public FaultTest {
 protected:
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
  // Serves until Hold.
  std::unique_ptr<Victim> StartHostToHold() {
    hold_.Set(false);
    auto host = std::make_unique<Victim>([this] {
      const std::unique_ptr<EngineHost> serving = MakeHost();
      Victim::Mark();
      while (!hold_.Get()) serving->Poll();
      Victim::Mark();
      for (;;) serving->Poll();
    });
    EXPECT_TRUE(host->RunToMark());
    host->RunOn();
    return host;
  }
  // Stops it between two events.
  void Hold(Victim& host) {
    hold_.Set(true);
    EXPECT_TRUE(host.AwaitMark());
  }

 private:
  CountingEngine engine_{/*num_envs=*/1, /*episode_steps=*/0};
  SharedFlag hold_;
};

}  // namespace tandem

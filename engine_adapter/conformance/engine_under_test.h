// EngineUnderTest: one run of the engine's program, and its client. FieldsOf:
// observations and actions of any type.
//
// Data flow: SuiteArguments -> the program -> its region -> ClientSide.
// Ownership: the probe or a rule; destruction ends client and program, and
// removes the region.
//
//   EngineUnderTest engine;
//   engine.Start({"--seed=5"});
//   TANDEM_RETURN_IF_ERROR(engine.Attach());
//   FillActions(engine.client->arrays(), 0.5F);

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/conformance/server_process.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/envelope.h"
#include "transport/frame_reader.h"
#include "transport/rpc_client.h"
#include "transport/step_arrays.h"

namespace tandem {

inline constexpr uint32_t kEnvs = 3;

struct EngineUnderTest {
  EngineUnderTest();
  EngineUnderTest(const EngineUnderTest&) = delete;
  EngineUnderTest& operator=(const EngineUnderTest&) = delete;
  ~EngineUnderTest() { End(); }

  // The program, the engine's flags, --name, --num_envs, then `flags`.
  std::vector<std::string> Command(const std::vector<std::string>& flags) const;
  // Replaces the server.
  void Start(const std::vector<std::string>& flags = {});
  // Replaces the client. Waits until the server serves, or has ended, at most
  // as long as the watchdog lets it run. Error texts have its last lines.
  absl::Status Attach(AutoresetMode autoreset = AutoresetMode::kSameStep);
  // Calls the engine by RPC, after an Attach.
  absl::StatusOr<RpcClient*> Calls();
  absl::StatusOr<RpcMessage> Call(PackedCall call);
  template <typename Request>
  absl::StatusOr<RpcMessage> Call(rpc::MethodId method, Request request) {
    rpc::EnvelopeT call;
    call.method = method;
    call.payload.Set(std::move(request));
    return Call(PackedCall(call));
  }
  // Requests a frame, and returns it. For servers with frames.
  absl::StatusOr<Frame> RequestFrame();
  void End();

  const std::string name;  // of the region
  std::unique_ptr<ServerProcess> server = nullptr;
  std::optional<ClientSide> client = std::nullopt;
  std::unique_ptr<RpcClient> rpcs = nullptr;  // of the client
};

// Returns a call of the method whose request has no field.
PackedCall EmptyCall(rpc::MethodId method);

// Returns the fields of a role, kObs, kFinalObs or kAction; without a table of
// fields, the float32 rows as one field.
std::vector<FieldArray> FieldsOf(const StepArrays& arrays, FieldRole role);

// Sets all actions of all environments to `value`, in the type of each field.
// In a field of integers a value that they do not have sets all bits.
void FillActions(const StepArrays& arrays, float value);

// Whether all floats of the fields of this role are finite.
bool AllFinite(const StepArrays& arrays, FieldRole role);

}  // namespace tandem

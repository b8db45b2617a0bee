// EngineRule: the fixture of all rules. RulesFor: that of a group of rules,
// which needs capabilities of the engine.
//
// Data flow: a rule -> an EngineUnderTest of its own -> expectations.
// Each group has a source of its own, *_rules.cc; the group's name is the
// fixture's. Without a needed capability the group's rules are skipped.
//
//   using Frames = RulesFor<Capability::kFrames>;
//   TEST_F(Frames, AFrameShowsTheNewestState) {
//     engine_.Start({kFramesFlag});
//     Attach();
//     Step();
//     ...
//   }

#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/conformance/engine_facts.h"
#include "engine_adapter/conformance/engine_under_test.h"
#include "engine_adapter/conformance/server_process.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/rpc_client.h"
#include "transport/step_arrays.h"

namespace tandem {

using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;
// What an environment observes: its rows of all fields, one after another.
struct Observation : std::vector<std::byte> {};
// For failures: the bytes' beginning.
void PrintTo(const Observation& observation, std::ostream* out);

template <typename T>
std::vector<T> Copy(std::span<T> values) {
  return std::vector<T>(values.begin(), values.end());
}

class EngineRule : public testing::Test {
 protected:
  explicit EngineRule(std::initializer_list<Capability> needs = {})
      : needs_(needs) {}
  void SetUp() override;
  void TearDown() override;

  // These end the rule if they fail.
  void Attach(AutoresetMode autoreset = AutoresetMode::kSameStep);
  void Begin() {
    engine_.Start();
    Attach();
  }
  // Starts a server with episodes of `steps` steps, and attaches the client.
  void ServeEpisodes(int steps, AutoresetMode autoreset);
  void Receive();
  // A step of all environments, with the action number `step` of --actions.
  void Step(size_t step = 0);
  void Reset(const std::vector<int64_t>& envs, std::optional<uint64_t> seed);
  void Require(const absl::Status& status);
  // Calls the engine, and returns the answer.
  template <typename Response, typename Request>
  Response Answer(rpc::MethodId method, Request request) {
    const absl::StatusOr<RpcMessage> message =
        engine_.Call(method, std::move(request));
    Require(message.status());
    const auto* const payload =
        message->envelope().payload_as<typename Response::TableType>();
    if (payload == nullptr) Require(WrongPayload(method));
    Response response;
    payload->UnPackTo(&response);
    return response;
  }

  const StepArrays& arrays() { return engine_.client->arrays(); }
  Observation Obs(uint32_t env) { return Rows(FieldRole::kObs, env, 1); }
  Observation AllObs() { return Rows(FieldRole::kObs, 0, kEnvs); }
  Observation AllFinalObs() { return Rows(FieldRole::kFinalObs, 0, kEnvs); }
  bool ObsIsFinite() { return AllFinite(arrays(), FieldRole::kObs); }
  // The number of exchanges that the engine has answered.
  uint64_t frame_seq();
  bool AnyTraceInSharedMemory() const;

  EngineUnderTest engine_;

 private:
  static absl::Status WrongPayload(rpc::MethodId method);
  Observation Rows(FieldRole role, uint32_t first, uint32_t count);

  std::vector<Capability> needs_;
  std::optional<RuleWatchdog> watchdog_;
};

// The number `step` of --actions.
float ActionOf(size_t step);

template <Capability... kNeeds>
class RulesFor : public EngineRule {
 protected:
  RulesFor() : EngineRule({kNeeds...}) {}
};

}  // namespace tandem

// Fuzz target of the states of MuJoCo environments, behind their checksum. The
// input overwrites, cuts and joins bytes of a valid state, with changes of the
// model and a contract.
//
// Data flow: bytes -> StatePort::Stage -> Reset and Step -> abort if a refused
// state has changed the environment.
//
// mujoco_environment_state_fuzz_test runs the same function over state_corpus
// and over random scripts.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

class Target {
 public:
  Target() : rig_(MakeRig()), states_(rig_.ports().states) {
    Require(rig_.ResetAll(0).ok(), "reset");
    Save(&plain_);
    rpc::SimulationContractT contract;
    contract.friction_range = {0.5F, 1.5F};
    contract.mass_scale_range = {0.9F, 1.1F};
    contract.push_interval_range = {0.1F, 0.2F};
    contract.push_velocity_range = {0.1F, 0.2F};
    Require(rig_.ports().randomization->SetContract(kFirst, &contract, 1).ok(),
            "contract");
    Require(rig_.ResetAll(0).ok() && rig_.Step().ok(), "step");
    Save(&randomized_);
  }

  void Try(Script script) {
    std::string state = script.Byte() % 2 == 0 ? plain_ : randomized_;
    while (!script.AtEnd()) {
      const uint32_t at = script.Word();
      const uint8_t value = script.Byte();
      if (value == 1) {
        state.resize(at % (state.size() + 1));
      } else if (value == 2) {
        state.append(randomized_, at % randomized_.size(), 64);
      } else if (!state.empty()) {
        state[at % state.size()] = static_cast<char>(value);
      }
    }
    std::string before;
    Save(&before);
    const bool valid = states_->Stage(0, state).ok();
    std::string after;
    Save(&after);
    Require(before == after, "Stage has changed the environment");
    if (!valid) return;
    // MuJoCo may fail with such numbers, with an error.
    (void)rig_.Reset(kFirst, {});
    (void)rig_.Step();
    Require(states_->Stage(0, plain_).ok(), "a valid state was refused");
    Require(rig_.Reset(kFirst, {}).ok() && rig_.Step().ok(),
            "a valid state was not put in place");
  }

 private:
  static constexpr uint32_t kFirst[] = {0};

  static EngineRig MakeRig() {
    InstallMujocoLog([](absl::string_view) {});
    return EngineRig(MakeMujocoEngine("Hopper-v5", {.num_envs = 1}).value());
  }
  void Save(std::string* state) {
    Require(states_->Save(0, state).ok(), "save");
  }

  EngineRig rig_;
  StatePort* states_;
  std::string plain_;
  std::string randomized_;
};

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tandem::Target target;
  target.Try(tandem::Script(data, size));
  return 0;
}

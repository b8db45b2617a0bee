// CounterScene, CounterJoints, CounterRandomization: the ports of CounterEngine
// for the services scene, mujoco, telemetry and agent.
//
// Data flow: services <-> ports <-> CounterState. The steps do no work for
// them: a port computes its answer when it is called.
// Ownership: the engine owns them, beside its state. The stepping thread calls
// them between exchanges; the services have checked the environments, the ids
// of entities and the numbers of actuators.
//
//   CounterState state(/*num_envs=*/4, /*act_size=*/2);
//   CounterScene scene(&state);
//   scene.Entity(/*env=*/3, kCounterId)->transform->position->x();

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/conformance/reference/counter_state.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/task_description.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// The entities. Each has the id of its place in this list.
inline constexpr uint64_t kWorldId = 1;
inline constexpr uint64_t kCounterId = 2;
inline constexpr uint64_t kCameraId = 3;

// Above the middle of the shown rectangle, whose lower left corner is (0, 0).
inline constexpr CounterPlace kCameraPlace = {.x = 49.5F, .y = 37, .z = 50};

class CounterScene final : public ScenePort {
 public:
  explicit CounterScene(CounterState* state) : state_(state) {}

  std::string scene_name() const override { return "counters"; }
  std::string scene_path() const override { return ""; }
  uint32_t entity_count() const override { return uint32_t{kCameraId}; }
  std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                         Wanted wanted) const override;
  std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                         uint64_t id) const override;
  std::optional<uint64_t> IdOf(absl::string_view name) const override;
  // Moves the counter, which counts on from there until the next reset; no
  // result of a step changes. kInvalidArgument: the position is not finite.
  // kUnsupported: another entity, a rotation or a scale.
  absl::Status SetTransform(uint32_t env, uint64_t id,
                            const rpc::TransformT& transform) override;

 private:
  rpc::EntityInfoT Describe(uint32_t env, uint64_t id, Wanted wanted) const;

  CounterState* state_;
};

// One joint, the count, and an actuator for each action.
class CounterJoints final : public MujocoPort {
 public:
  // The joint moves one metre in each step of `step_secs`.
  CounterJoints(CounterState* state, double step_secs,
                const std::vector<std::string>& actuator_names);

  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t env) const override;
  std::vector<float> Controls(uint32_t env) const override;
  void SetControl(uint32_t env, uint32_t actuator, float value) override {
    state_->envs[env].controls[actuator] = value;
  }

 private:
  CounterState* state_;
  float speed_;  // metres per second
  Info info_;
};

// Contracts with one field that has an effect, pose_position_noise: each
// episode draws the counter's start.
class CounterRandomization final : public RandomizationPort {
 public:
  explicit CounterRandomization(CounterState* state) : state_(state) {}

  absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) override;

 private:
  CounterState* state_;
};

// States as bytes: counts, the random stream, the contract and set controls.
class CounterStates final : public StatePort {
 public:
  explicit CounterStates(CounterState* state) : state_(state) {}

  std::string Fingerprint() const override { return "1"; }
  absl::Status Save(uint32_t env, std::string* state) override;
  absl::Status Stage(uint32_t env, absl::string_view state) override;
  void Discard(uint32_t env) override { staged_.erase(env); }

  // Puts the environment's staged state in place; false: there is none.
  bool Load(uint32_t env);
  void Clear() { staged_.clear(); }

 private:
  struct Staged {
    CounterState::Env env;
    std::vector<float> actions;
  };

  CounterState* state_;
  std::map<uint32_t, Staged> staged_;
};

// "echo" answers with the request; "counts" with the steps of each environment,
// as JSON.
class CounterMethods final : public OwnMethodPort {
 public:
  explicit CounterMethods(const CounterState* state) : state_(state) {}

  static std::vector<OwnMethod> Methods() {
    return {{.name = "echo", .help = "Returns the request."},
            {.name = "counts",
             .content_type = "application/json",
             .help = "Returns each environment's steps of its episode."}};
  }
  void CallOwn(size_t method, std::span<const uint8_t> request,
               std::weak_ptr<const void> wanted, Answer answer) override;

 private:
  const CounterState* state_;
};

}  // namespace tandem

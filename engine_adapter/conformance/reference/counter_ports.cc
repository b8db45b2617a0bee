#include "engine_adapter/conformance/reference/counter_ports.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"
#include "engine_adapter/contract_fields.h"
#include "engine_adapter/core/env_random.h"

namespace tandem {
namespace {

struct EntityRow {
  const char* name;
  const char* component;
};

// In the order of the ids.
constexpr std::array<EntityRow, kCameraId> kEntities = {{
    {.name = "world", .component = "body"},
    {.name = "counter", .component = "body"},
    {.name = "camera", .component = "camera"},
}};

constexpr char kUsedField[] = "pose_position_noise";

}  // namespace

std::vector<rpc::EntityInfoT> CounterScene::Entities(uint32_t env,
                                                     Wanted wanted) const {
  std::vector<rpc::EntityInfoT> entities;
  for (uint64_t id = 1; id <= kEntities.size(); ++id) {
    entities.push_back(Describe(env, id, wanted));
  }
  return entities;
}

std::optional<rpc::EntityInfoT> CounterScene::Entity(uint32_t env,
                                                     uint64_t id) const {
  if (id == 0 || id > kEntities.size()) return std::nullopt;
  return Describe(env, id, {.transforms = true, .components = true});
}

std::optional<uint64_t> CounterScene::IdOf(absl::string_view name) const {
  for (uint64_t id = 1; id <= kEntities.size(); ++id) {
    if (name == kEntities[id - 1].name) return id;
  }
  return std::nullopt;
}

absl::Status CounterScene::SetTransform(uint32_t env, uint64_t id,
                                        const rpc::TransformT& transform) {
  if (id != kCounterId || transform.rotation != nullptr ||
      transform.scale != nullptr) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("transform: expected a position of the counter, id ",
                     kCounterId, ", found ",
                     id == kCounterId ? "a rotation or a scale"
                                      : absl::StrCat("entity ", id),
                     "; nothing else moves"));
  }
  const rpc::Vec3& to = *transform.position;
  for (const float part : {to.x(), to.y(), to.z()}) {
    if (std::isfinite(part)) continue;
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("position: expected finite numbers, found ", part));
  }
  CounterState::Env& counter = state_->envs[env];
  counter.start = {.x = to.x() - static_cast<float>(counter.episode_steps),
                   .y = to.y(),
                   .z = to.z()};
  return absl::OkStatus();
}

rpc::EntityInfoT CounterScene::Describe(uint32_t env, uint64_t id,
                                        Wanted wanted) const {
  const EntityRow& row = kEntities[id - 1];
  rpc::EntityInfoT entity;
  entity.id = id;
  entity.name = row.name;
  if (wanted.components) entity.components = {row.component};
  if (!wanted.transforms) return entity;
  const CounterPlace place = id == kWorldId    ? CounterPlace()
                             : id == kCameraId ? kCameraPlace
                                               : state_->envs[env].place();
  entity.transform = std::make_unique<rpc::TransformT>();
  entity.transform->position =
      std::make_unique<rpc::Vec3>(place.x, place.y, place.z);
  entity.transform->rotation = std::make_unique<rpc::Quat>(0.F, 0.F, 0.F, 1.F);
  entity.transform->scale = std::make_unique<rpc::Vec3>(1.F, 1.F, 1.F);
  return entity;
}

CounterJoints::CounterJoints(CounterState* state, double step_secs,
                             const std::vector<std::string>& actuator_names)
    : state_(state),
      speed_(static_cast<float>(1 / step_secs)),
      info_{.nq = 1,
            .nv = 1,
            .joint_names = {"count"},
            .position_names = {"count"},
            .actuators = {}} {
  constexpr float kAny = std::numeric_limits<float>::infinity();
  for (const std::string& name : actuator_names) {
    info_.actuators.push_back({.name = name, .low = -kAny, .high = kAny});
  }
}

rpc::JointStateT CounterJoints::Joints(uint32_t env) const {
  const uint32_t count = state_->envs[env].episode_steps;
  rpc::JointStateT joints;
  joints.positions = {static_cast<float>(count)};
  joints.velocities = {count > 0 ? speed_ : 0.0F};  // at rest after a reset
  joints.nq = info_.nq;
  joints.nv = info_.nv;
  joints.env_id = env;
  return joints;
}

std::vector<float> CounterJoints::Controls(uint32_t env) const {
  const std::span<const float> actions = state_->ActionsOf(env);
  std::vector<float> controls(actions.begin(), actions.end());
  for (const auto& [actuator, value] : state_->envs[env].controls) {
    controls[actuator] = value;
  }
  return controls;
}

absl::StatusOr<std::vector<std::string>> CounterRandomization::SetContract(
    std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  std::vector<float> noise;  // empty: none
  std::vector<std::string> unused;
  if (contract != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(const auto fields, ContractFields(*contract));
    for (const ContractField& field : fields) {
      if (field.name == absl::string_view(kUsedField)) {
        noise = field.values;
      } else {
        unused.emplace_back(field.name);
      }
    }
  }
  if (!noise.empty() && noise.size() != 3) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(kUsedField,
                     ": expected [x, y, z], each finite, 0 or more; found ",
                     Quoted(absl::StrCat("[", absl::StrJoin(noise, ", "), "]")),
                     "; fix the contract"));
  }
  const uint64_t first_seed = seed ? *seed : std::random_device()();
  for (const uint32_t env : envs) {
    std::optional<CounterState::StartNoise>& own = state_->envs[env].noise;
    own.reset();
    if (noise.empty()) continue;
    own = CounterState::StartNoise{.metres = {noise[0], noise[1], noise[2]},
                                   .random = EnvRandom(first_seed + env)};
  }
  return unused;
}

void CounterMethods::CallOwn(size_t method, std::span<const uint8_t> request,
                             std::weak_ptr<const void>, Answer answer) {
  if (method == 0) {
    return answer(request);
  }
  const std::string counts = absl::StrCat(
      "[",
      absl::StrJoin(state_->envs, ", ",
                    [](std::string* out, const CounterState::Env& env) {
                      absl::StrAppend(out, env.episode_steps);
                    }),
      "]");
  answer(std::span(reinterpret_cast<const uint8_t*>(counts.data()),
                   counts.size()));
}

}  // namespace tandem

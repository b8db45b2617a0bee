#include "sdk/foreign_services.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/printable.h"
#include "engine_adapter/contract_fields.h"
#include "flatbuffers/flatbuffers.h"
#include "sdk/call_result.h"

namespace tandem {
namespace {

// Copies `count` names.
absl::StatusOr<std::vector<std::string>> NamesOf(const char* const* names,
                                                 uint32_t count,
                                                 absl::string_view what) {
  std::vector<std::string> copies;
  if (count > 0 && names == nullptr) return MissingArgument(what);
  for (uint32_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return MissingArgument(what);
    copies.emplace_back(names[i]);
  }
  return copies;
}

absl::Status CannotDo(absl::string_view what) {
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("this engine cannot ", what));
}

template <typename T, size_t kSize>
std::unique_ptr<T> PartOf(uint32_t has, const float (&values)[kSize]) {
  if (has == 0) return nullptr;
  if constexpr (kSize == 4) {
    return std::make_unique<T>(values[0], values[1], values[2], values[3]);
  } else {
    return std::make_unique<T>(values[0], values[1], values[2]);
  }
}

uint32_t Copy(const rpc::Vec3* from, float* to) {
  if (from == nullptr) return 0;
  to[0] = from->x();
  to[1] = from->y();
  to[2] = from->z();
  return 1;
}

// The begin of a saved state. Behind it are `bytes` of the environment's
// contract, then those of the program's save_state.
struct SavedContract {
  uint64_t seed;
  uint32_t bytes;  // 0: no contract
  uint32_t taken;  // 1: by a reset
};

absl::Status InvalidState(absl::string_view found) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("state: expected one of this engine, found ",
                                found.size(), " other bytes"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ForeignServices>> ForeignServices::Make(
    const tandem_services& given, uint32_t num_envs, std::string task,
    ResultOf result_of, ForeignDraws* draws) {
  auto made = absl::WrapUnique(new ForeignServices(
      given, num_envs, std::move(task), std::move(result_of)));
  TANDEM_RETURN_IF_ERROR(made->ReadScene());
  TANDEM_RETURN_IF_ERROR(made->ReadJoints());
  TANDEM_RETURN_IF_ERROR(made->ReadCameras(draws));
  TANDEM_RETURN_IF_ERROR(made->ReadContractFields());
  TANDEM_RETURN_IF_ERROR(made->ReadOwnMethods());
  if ((given.scene == nullptr) != (given.poses == nullptr)) {
    return MissingArgument(given.scene == nullptr
                               ? "services->scene, beside poses"
                               : "services->poses, beside scene");
  }
  if (given.scene != nullptr) {
    made->live_scene_.emplace(given, made->result_of_);
  }
  if ((given.save_state == nullptr) != (given.load_state == nullptr)) {
    return MissingArgument(given.save_state == nullptr
                               ? "services->save_state, beside load_state"
                               : "services->load_state, beside save_state");
  }
  return made;
}

absl::Status ForeignServices::ReadScene() {
  if (given_.entity_count == 0) return absl::OkStatus();
  if (given_.entities == nullptr) return MissingArgument("services->entities");
  if (given_.transform == nullptr) {
    return MissingArgument("services->transform, of an engine with entities");
  }
  for (const tandem_entity& entity :
       std::span(given_.entities, given_.entity_count)) {
    if (entity.name == nullptr) {
      return MissingArgument("services->entities: name");
    }
    Named& copy = entities_.emplace_back();
    copy.name = entity.name;
    if (entity.components != nullptr) {
      copy.components =
          absl::StrSplit(entity.components, ',', absl::SkipEmpty());
    }
  }
  return absl::OkStatus();
}

absl::Status ForeignServices::ReadJoints() {
  if (given_.joints == nullptr) return absl::OkStatus();
  info_.nq = given_.position_count;
  info_.nv = given_.velocity_count;
  TANDEM_ASSIGN_OR_RETURN(
      info_.joint_names,
      NamesOf(given_.joint_names, given_.joint_count, "services->joint_names"));
  const bool own_names = given_.position_names != nullptr;
  if (!own_names && given_.joint_count != given_.position_count) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("services->position_names: expected a name for each of ",
                     given_.position_count,
                     " positions, since there are other joints, found NULL"));
  }
  TANDEM_ASSIGN_OR_RETURN(
      info_.position_names,
      NamesOf(own_names ? given_.position_names : given_.joint_names,
              given_.position_count, "services->position_names"));
  if (given_.actuator_count > 0 && given_.actuators == nullptr) {
    return MissingArgument("services->actuators");
  }
  for (const tandem_actuator& actuator :
       std::span(given_.actuators, given_.actuator_count)) {
    if (!(actuator.low <= actuator.high)) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("services->actuators: expected low at most high, found ",
                       actuator.low, " and ", actuator.high));
    }
    info_.actuators.push_back(
        {.name = actuator.name == nullptr ? "" : actuator.name,
         .low = actuator.low,
         .high = actuator.high});
  }
  return absl::OkStatus();
}

absl::Status ForeignServices::ReadCameras(ForeignDraws* draws) {
  if (given_.draws_frames != 0) frames_.emplace(draws);
  if (given_.camera_count == 0) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(
      const auto names,
      NamesOf(given_.cameras, given_.camera_count, "services->cameras"));
  std::vector<rpc::CameraInfoT> cameras;
  for (const std::string& name : names) {
    rpc::CameraInfoT& camera = cameras.emplace_back();
    // A camera that is an entity has its id.
    camera.id = IdOf(name).value_or(entities_.size() + cameras.size());
    camera.name = name;
  }
  std::vector<std::string> viewports = {"main"};
  if (given_.viewport_count > 0) {
    TANDEM_ASSIGN_OR_RETURN(viewports,
                            NamesOf(given_.viewports, given_.viewport_count,
                                    "services->viewports"));
  }
  ForeignCamera::Size size;
  if (given_.image_width != 0) size.width = given_.image_width;
  if (given_.image_height != 0) size.height = given_.image_height;
  camera_.emplace(draws, std::move(cameras), std::move(viewports), size);
  return absl::OkStatus();
}

absl::Status ForeignServices::ReadContractFields() {
  TANDEM_ASSIGN_OR_RETURN(
      contract_fields_,
      NamesOf(given_.contract_fields, given_.contract_field_count,
              "services->contract_fields"));
  const flatbuffers::TypeTable& type = *rpc::SimulationContractTypeTable();
  const std::span<const char* const> known(type.names, type.num_elems);
  for (const std::string& field : contract_fields_) {
    if (std::ranges::find(known, absl::string_view(field),
                          [](const char* name) {
                            return absl::string_view(name);
                          }) != known.end()) {
      continue;
    }
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("services->contract_fields: expected some of ",
                     absl::StrJoin(known, ", "), ", found '", Printable(field),
                     "'"));
  }
  return absl::OkStatus();
}

absl::Status ForeignServices::ReadOwnMethods() {
  if (given_.own_method_count > 0 && given_.own_methods == nullptr) {
    return MissingArgument("services->own_methods");
  }
  for (const tandem_method& method :
       std::span(given_.own_methods, given_.own_method_count)) {
    if (method.name == nullptr) {
      return MissingArgument("services->own_methods: name");
    }
    OwnMethod& copy = own_methods_.emplace_back(OwnMethod{.name = method.name});
    if (method.content_type != nullptr) {
      copy.content_type = method.content_type;
    }
    if (method.help != nullptr) copy.help = method.help;
  }
  return absl::OkStatus();
}

EnginePorts ForeignServices::ports() {
  return {.randomization = contract_fields_.empty() ? nullptr : this,
          .mujoco = given_.joints == nullptr ? nullptr : this,
          .scene = entities_.empty() ? nullptr : this,
          .camera = camera_ ? &*camera_ : nullptr,
          .debug = given_.show_marks == nullptr ? nullptr : this,
          .states = given_.save_state == nullptr ? nullptr : this};
}

rpc::EntityInfoT ForeignServices::InfoOf(uint32_t env, uint32_t index,
                                         Wanted wanted) const {
  rpc::EntityInfoT entity;
  entity.id = index + 1;
  entity.name = entities_[index].name;
  if (wanted.components) entity.components = entities_[index].components;
  if (!wanted.transforms) return entity;
  tandem_transform at = {};
  at.struct_size = sizeof(at);
  ThrowUnlessOk(result_of_(given_.transform(given_.user, env, index, &at)));
  entity.transform = std::make_unique<rpc::TransformT>();
  entity.transform->position = PartOf<rpc::Vec3>(at.has_position, at.position);
  entity.transform->rotation = PartOf<rpc::Quat>(at.has_rotation, at.rotation);
  entity.transform->scale = PartOf<rpc::Vec3>(at.has_scale, at.scale);
  return entity;
}

std::vector<rpc::EntityInfoT> ForeignServices::Entities(uint32_t env,
                                                        Wanted wanted) const {
  std::vector<rpc::EntityInfoT> entities;
  for (uint32_t index = 0; index < entities_.size(); ++index) {
    entities.push_back(InfoOf(env, index, wanted));
  }
  return entities;
}

std::optional<rpc::EntityInfoT> ForeignServices::Entity(uint32_t env,
                                                        uint64_t id) const {
  if (id == 0 || id > entities_.size()) return std::nullopt;
  return InfoOf(env, static_cast<uint32_t>(id - 1),
                {.transforms = true, .components = true});
}

std::optional<uint64_t> ForeignServices::IdOf(absl::string_view name) const {
  const auto found = std::ranges::find(entities_, name, &Named::name);
  if (found == entities_.end()) return std::nullopt;
  return static_cast<uint64_t>(found - entities_.begin()) + 1;
}

absl::Status ForeignServices::SetTransform(uint32_t env, uint64_t id,
                                           const rpc::TransformT& transform) {
  if (given_.move == nullptr) return CannotDo("move its entities");
  tandem_transform to = {};
  to.struct_size = sizeof(to);
  to.has_position = Copy(transform.position.get(), to.position);
  to.has_scale = Copy(transform.scale.get(), to.scale);
  if (const rpc::Quat* const rotation = transform.rotation.get()) {
    to.has_rotation = 1;
    to.rotation[0] = rotation->x();
    to.rotation[1] = rotation->y();
    to.rotation[2] = rotation->z();
    to.rotation[3] = rotation->w();
  }
  return result_of_(
      given_.move(given_.user, env, static_cast<uint32_t>(id - 1), &to));
}

rpc::JointStateT ForeignServices::Joints(uint32_t env) const {
  rpc::JointStateT joints;
  joints.positions.resize(info_.nq);
  joints.velocities.resize(info_.nv);
  joints.nq = info_.nq;
  joints.nv = info_.nv;
  joints.env_id = env;
  ThrowUnlessOk(result_of_(given_.joints(
      given_.user, env, joints.positions.data(), joints.velocities.data())));
  return joints;
}

std::vector<float> ForeignServices::Controls(uint32_t env) const {
  std::vector<float> controls(info_.actuators.size());
  if (given_.controls != nullptr) {
    ThrowUnlessOk(
        result_of_(given_.controls(given_.user, env, controls.data())));
  }
  return controls;
}

void ForeignServices::SetControl(uint32_t env, uint32_t actuator, float value) {
  ThrowUnlessOk(
      given_.set_control == nullptr
          ? CannotDo("set its actuators")
          : result_of_(given_.set_control(given_.user, env, actuator, value)));
}

absl::Status ForeignServices::Draw(const rpc::DebugDrawRequestT& request) {
  TANDEM_RETURN_IF_ERROR(canvas_.Draw(request));
  return Show(request.env_id);
}

absl::Status ForeignServices::Show(uint32_t env) {
  std::vector<tandem_mark> marks;
  if (canvas_.Marks(env) != nullptr) {
    for (const DebugMark& mark : *canvas_.Marks(env)) {
      tandem_mark& copy = marks.emplace_back();
      copy.is_arrow = mark.is_arrow ? 1 : 0;
      std::ranges::copy(mark.from, copy.from);
      std::ranges::copy(mark.to, copy.to);
      std::ranges::copy(mark.rgba, copy.rgba);
    }
  }
  return result_of_(given_.show_marks(given_.user, env, marks.data(),
                                      static_cast<uint32_t>(marks.size())));
}

void ForeignServices::Clear() {
  for (uint32_t env = 0; env < contracts_.size(); ++env) {
    if (canvas_.Marks(env) == nullptr) continue;
    rpc::DebugDrawRequestT none;
    none.env_id = env;
    none.clear_previous = true;
    (void)Draw(none);
  }
}

void ForeignServices::ClearClientState() {
  if (given_.show_marks != nullptr) Clear();
  contracts_.assign(contracts_.size(), {});
  has_contracts_ = false;
  staged_.clear();
}

absl::StatusOr<std::shared_ptr<const ForeignServices::Ranges>>
ForeignServices::RangesOf(const rpc::SimulationContractT& contract,
                          std::vector<std::string>* unused) const {
  auto held = std::make_shared<Ranges>();
  TANDEM_ASSIGN_OR_RETURN(const auto fields, ContractFields(contract));
  held->texts.reserve(fields.size());  // ranges point at them
  for (const ContractField& field : fields) {
    const absl::string_view name = field.name;
    if (std::ranges::find(contract_fields_, name) == contract_fields_.end()) {
      unused->emplace_back(name);
      continue;
    }
    tandem_range& range = held->ranges.emplace_back();
    range.name = field.name;
    if (!field.text.empty()) {
      range.text = held->texts.emplace_back(field.text).c_str();
    }
    if (field.values.size() > std::size(range.values)) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat(name, ": expected at most ",
                                    std::size(range.values), " numbers, found ",
                                    field.values.size(), "; fix the contract"));
    }
    range.count = static_cast<uint32_t>(field.values.size());
    std::ranges::copy(field.values, range.values);
  }
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(rpc::SimulationContract::Pack(packed, &contract));
  held->packed.assign(reinterpret_cast<const char*>(packed.GetBufferPointer()),
                      packed.GetSize());
  return held;
}

ForeignServices::OfEnv ForeignServices::ByContract(
    const std::shared_ptr<const Ranges>& ranges, uint64_t seed) {
  OfEnv its;
  if (ranges == nullptr || ranges->ranges.empty()) return its;
  its.ranges = ranges;
  its.contract.struct_size = sizeof(its.contract);
  its.contract.range_count = static_cast<uint32_t>(ranges->ranges.size());
  its.contract.ranges = ranges->ranges.data();
  its.contract.seed = seed;
  return its;
}

absl::StatusOr<std::vector<std::string>> ForeignServices::SetContract(
    std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  std::shared_ptr<const Ranges> ranges;
  std::vector<std::string> unused;
  if (contract != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(ranges, RangesOf(*contract, &unused));
  }
  std::random_device entropy;
  const uint64_t first = seed ? *seed : uint64_t{entropy()} << 32 | entropy();
  for (const uint32_t env : envs) {
    contracts_[env] = ByContract(ranges, first + env);
    if (contracts_[env].ranges != nullptr) has_contracts_ = true;
  }
  return unused;
}

const tandem_contract* ForeignServices::TakeContract(uint32_t env) {
  OfEnv& its = contracts_[env];
  if (its.ranges == nullptr) return nullptr;
  its.contract.begins = its.taken ? 0 : 1;
  its.taken = true;
  return &its.contract;
}

std::string ForeignServices::Fingerprint() const {
  return absl::StrCat("by libtandem; contracts of ",
                      absl::StrJoin(contract_fields_, ", "));
}

absl::Status ForeignServices::Save(uint32_t env, std::string* state) {
  const OfEnv& its = contracts_[env];
  const absl::string_view packed =
      its.ranges == nullptr ? "" : absl::string_view(its.ranges->packed);
  const SavedContract head = {.seed = its.contract.seed,
                              .bytes = static_cast<uint32_t>(packed.size()),
                              .taken = its.taken ? 1U : 0U};
  const uint8_t* own = nullptr;
  uint64_t bytes = 0;
  TANDEM_RETURN_IF_ERROR(
      result_of_(given_.save_state(given_.user, env, &own, &bytes)));
  absl::StrAppend(
      state,
      absl::string_view(reinterpret_cast<const char*>(&head), sizeof(head)),
      packed,
      absl::string_view(reinterpret_cast<const char*>(own),
                        own == nullptr ? 0 : bytes));
  return absl::OkStatus();
}

absl::Status ForeignServices::Stage(uint32_t env, absl::string_view state) {
  SavedContract head;
  if (state.size() < sizeof(head)) return InvalidState(state);
  std::memcpy(&head, state.data(), sizeof(head));
  const absl::string_view rest = state.substr(sizeof(head));
  if (head.bytes > rest.size() || head.taken > 1) return InvalidState(state);
  std::shared_ptr<const Ranges> ranges;
  if (head.bytes > 0) {
    const std::vector<uint8_t> packed(rest.begin(), rest.begin() + head.bytes);
    flatbuffers::Verifier verifier(packed.data(), packed.size());
    if (!verifier.VerifyBuffer<rpc::SimulationContract>(nullptr)) {
      return InvalidState(state);
    }
    rpc::SimulationContractT contract;
    flatbuffers::GetRoot<rpc::SimulationContract>(packed.data())
        ->UnPackTo(&contract);
    std::vector<std::string> unused;
    TANDEM_ASSIGN_OR_RETURN(ranges, RangesOf(contract, &unused));
  }
  Staged& staged = staged_[env];
  staged = {.contract = ByContract(ranges, head.seed),
            .state = std::string(rest.substr(head.bytes))};
  staged.contract.taken = head.taken != 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> ForeignServices::LoadStaged(uint32_t env) {
  const auto found = staged_.extract(env);
  if (found.empty()) return false;
  const std::string& state = found.mapped().state;
  const absl::Status loaded = result_of_(given_.load_state(
      given_.user, env, reinterpret_cast<const uint8_t*>(state.data()),
      state.size()));
  TANDEM_RETURN_IF_ERROR(loaded);
  contracts_[env] = std::move(found.mapped().contract);
  if (contracts_[env].ranges != nullptr) has_contracts_ = true;
  return true;
}

}  // namespace tandem

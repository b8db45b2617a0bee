#include "client_py/engine_bindings/python_ports.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "client_py/bindings/envelope_values.h"
#include "engine_adapter/given_scene.h"
#include "engine_adapter/image.h"
#include "flatbuffers/flatbuffers.h"

namespace tandem {
namespace py = pybind11;
namespace {

using Three = std::array<float, 3>;
using Four = std::array<float, 4>;
// Id, name, position, rotation, scale, components: Adaptor.entities.
using EntityRow =
    std::tuple<uint64_t, std::string, std::optional<Three>, std::optional<Four>,
               std::optional<Three>, std::vector<std::string>>;

std::unique_ptr<rpc::Vec3> VecOf(const std::optional<Three>& at) {
  if (!at) return nullptr;
  return std::make_unique<rpc::Vec3>((*at)[0], (*at)[1], (*at)[2]);
}

std::unique_ptr<rpc::Quat> QuatOf(const std::optional<Four>& at) {
  if (!at) return nullptr;
  return std::make_unique<rpc::Quat>((*at)[0], (*at)[1], (*at)[2], (*at)[3]);
}

py::object Values(const rpc::Vec3* at) {
  if (at == nullptr) return py::none();
  return py::cast(Three{at->x(), at->y(), at->z()});
}

py::object Values(const rpc::Quat* at) {
  if (at == nullptr) return py::none();
  return py::cast(Four{at->x(), at->y(), at->z(), at->w()});
}

rpc::EntityInfoT InfoOf(const EntityRow& row, ScenePort::Wanted wanted) {
  const auto& [id, name, position, rotation, scale, components] = row;
  rpc::EntityInfoT entity;
  entity.id = id;
  entity.name = name;
  if (wanted.components) entity.components = components;
  if (!wanted.transforms) return entity;
  entity.transform = std::make_unique<rpc::TransformT>();
  entity.transform->position = VecOf(position);
  entity.transform->rotation = QuatOf(rotation);
  entity.transform->scale = VecOf(scale);
  return entity;
}

// Returns what a method of the adaptor returns.
template <typename T, typename... Arguments>
T Ask(PythonAdaptor* adaptor, const char* method,
      const Arguments&... arguments) {
  T result = {};
  adaptor->CallOrThrow([&] {
    result = adaptor->object().attr(method)(arguments...).template cast<T>();
  });
  return result;
}

std::vector<EntityRow> EntitiesOf(PythonAdaptor* adaptor, uint32_t env) {
  return Ask<std::vector<EntityRow>>(adaptor, "entities", env);
}

// Returns the contract's fields, as envelope_values.h converts them; None for
// nullptr.
py::object ContractValues(const rpc::SimulationContractT* contract) {
  if (contract == nullptr) return py::none();
  rpc::ResetAgentRequestT request;
  request.simulation_contract =
      std::make_unique<rpc::SimulationContractT>(*contract);
  rpc::EnvelopeT envelope;
  envelope.payload.Set(std::move(request));
  flatbuffers::FlatBufferBuilder builder;
  rpc::FinishEnvelopeBuffer(builder, rpc::Envelope::Pack(builder, &envelope));
  return PayloadValues(
      *rpc::GetEnvelope(builder.GetBufferPointer()))["simulation_contract"];
}

// Returns the engine's image, RGB.
absl::StatusOr<std::vector<uint8_t>> Rendered(PythonAdaptor* adaptor,
                                              uint32_t env,
                                              const std::string& camera,
                                              uint32_t width, uint32_t height) {
  std::vector<uint8_t> rgb;
  TANDEM_RETURN_IF_ERROR(adaptor->Call([&] {
    const py::array image =
        adaptor->object().attr("render")(env, camera, width, height);
    const auto* const first = static_cast<const uint8_t*>(image.data());
    rgb.assign(first, first + image.nbytes());
  }));
  return rgb;
}

}  // namespace

PythonScene::PythonScene(PythonAdaptor* adaptor)
    : adaptor_(adaptor),
      name_(adaptor->object().attr("scene_name").cast<std::string>()) {}

uint32_t PythonScene::entity_count() const {
  return static_cast<uint32_t>(EntitiesOf(adaptor_, 0).size());
}

std::vector<rpc::EntityInfoT> PythonScene::Entities(uint32_t env,
                                                    Wanted wanted) const {
  std::vector<rpc::EntityInfoT> entities;
  for (const EntityRow& row : EntitiesOf(adaptor_, env)) {
    entities.push_back(InfoOf(row, wanted));
  }
  return entities;
}

std::optional<rpc::EntityInfoT> PythonScene::Entity(uint32_t env,
                                                    uint64_t id) const {
  const std::vector<EntityRow> rows = EntitiesOf(adaptor_, env);
  if (id == 0 || id > rows.size()) return std::nullopt;
  return InfoOf(rows[id - 1], {.transforms = true, .components = true});
}

std::optional<uint64_t> PythonScene::IdOf(absl::string_view name) const {
  for (const EntityRow& row : EntitiesOf(adaptor_, 0)) {
    if (std::get<1>(row) == name) return std::get<0>(row);
  }
  return std::nullopt;
}

absl::Status PythonScene::SetTransform(uint32_t env, uint64_t id,
                                       const rpc::TransformT& transform) {
  return adaptor_->Call([&] {
    adaptor_->object().attr("move_entity")(
        env, id, Values(transform.position.get()),
        Values(transform.rotation.get()), Values(transform.scale.get()));
  });
}

PythonJoints::PythonJoints(PythonAdaptor* adaptor)
    : adaptor_(adaptor), info_{} {
  const py::object given = adaptor->object().attr("joint_info");
  const auto names = [&](const char* name) {
    return given.attr(name).cast<std::vector<std::string>>();
  };
  info_.joint_names = names("joint_names");
  info_.position_names = names("position_names");
  info_.nq = static_cast<uint32_t>(info_.position_names.size());
  info_.nv = given.attr("nv").cast<uint32_t>();
  using Row = std::tuple<std::string, float, float>;
  for (const auto& [name, low, high] :
       given.attr("actuators").cast<std::vector<Row>>()) {
    info_.actuators.push_back({.name = name, .low = low, .high = high});
  }
}

rpc::JointStateT PythonJoints::Joints(uint32_t env) const {
  using Floats = std::vector<float>;
  rpc::JointStateT joints;
  std::tie(joints.positions, joints.velocities) =
      Ask<std::pair<Floats, Floats>>(adaptor_, "joints", env);
  joints.nq = info_.nq;
  joints.nv = info_.nv;
  joints.env_id = env;
  return joints;
}

std::vector<float> PythonJoints::Controls(uint32_t env) const {
  return Ask<std::vector<float>>(adaptor_, "controls", env);
}

void PythonJoints::SetControl(uint32_t env, uint32_t actuator, float value) {
  adaptor_->CallOrThrow(
      [&] { adaptor_->object().attr("set_control")(env, actuator, value); });
}

absl::Status PythonDebug::Draw(const rpc::DebugDrawRequestT& request) {
  TANDEM_RETURN_IF_ERROR(canvas_.Draw(request));
  return Show(request.env_id);
}

void PythonDebug::Clear() {
  for (uint32_t env = 0; env < num_envs_; ++env) {
    if (canvas_.Marks(env) == nullptr) continue;
    (void)adaptor_->Call(
        [&] { adaptor_->object().attr("show_marks")(env, py::list()); });
  }
  canvas_.Clear();
}

absl::Status PythonDebug::Show(uint32_t env) {
  return adaptor_->Call([&] {
    py::list marks;
    if (canvas_.Marks(env) != nullptr) {
      for (const DebugMark& mark : *canvas_.Marks(env)) {
        marks.append(
            py::make_tuple(mark.is_arrow, mark.from, mark.to, mark.rgba));
      }
    }
    adaptor_->object().attr("show_marks")(env, marks);
  });
}

PythonCamera::PythonCamera(PythonAdaptor* adaptor) : adaptor_(adaptor) {
  using Row = std::pair<uint64_t, std::string>;
  for (const auto& [id, name] :
       adaptor->object().attr("camera_rows").cast<std::vector<Row>>()) {
    rpc::CameraInfoT& camera = cameras_.emplace_back();
    camera.id = id;
    camera.name = name;
  }
  std::tie(default_width_, default_height_) =
      adaptor->object()
          .attr("image_size")
          .cast<std::pair<uint32_t, uint32_t>>();
}

absl::Status PythonCamera::Draw(const ImageRequest& request,
                                std::weak_ptr<const void> wanted, Done done) {
  if (request.depth) {
    return MakeError(ErrorCode::kUnsupported,
                     "kind: expected COLOR, found DEPTH; engines in Python "
                     "render colours");
  }
  ImageRequest sized = request;
  if (sized.width == 0) sized.width = default_width_;
  if (sized.height == 0) sized.height = default_height_;
  TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<const void> held,
                          queue_.Admit(sized));
  const std::string& camera =
      cameras_[sized.of_viewport ? 0 : sized.index].name;
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<uint8_t> rgb,
      Rendered(adaptor_, sized.env, camera, sized.width, sized.height));
  queue_.Add({.held = std::move(held),
              .wanted = std::move(wanted),
              .render =
                  [sized, pixels = std::move(rgb)]() mutable {
                    return EncodeImage(std::move(pixels), sized.width,
                                       sized.height, sized.format);
                  },
              .done = std::move(done)});
  return absl::OkStatus();
}

absl::Status PythonFrames::Prepare(const FrameOptions& options) {
  options_ = options;
  images_.resize(options.envs.size(), std::vector<uint8_t>());
  return adaptor_->Call([&] {
    camera_ = py::list(adaptor_->object().attr("camera_rows"))[0]
                  .cast<std::pair<uint64_t, std::string>>()
                  .second;
  });
}

void PythonFrames::Capture(uint32_t place) {
  images_[place] = Rendered(adaptor_, options_.envs[place], camera_,
                            options_.width, options_.height);
}

absl::Status PythonFrames::Draw(uint32_t place, const FrameTile& tile) {
  if (!images_[place].ok()) return images_[place].status();
  const uint8_t* from = images_[place]->data();
  for (size_t y = 0; y < tile.rows; ++y, from += tile.row_bytes) {
    std::memcpy(tile.first + y * tile.stride, from, tile.row_bytes);
  }
  return absl::OkStatus();
}

uint64_t PythonLiveScene::Version(uint32_t) {
  return Ask<uint64_t>(adaptor_, "scene_version");
}

SceneSource::Make PythonLiveScene::Describe(uint32_t) {
  auto glb = std::make_shared<std::string>();
  adaptor_->CallOrThrow(
      [&] { *glb = adaptor_->object().attr("scene")().cast<std::string>(); });
  return [glb] { return GivenScene(std::move(*glb)); };
}

void PythonLiveScene::Capture(std::span<const uint32_t> envs,
                              PoseSnapshot* into) {
  adaptor_->CallOrThrow([&] {
    const py::array_t<float> poses = adaptor_->object().attr("poses")(
        std::vector<uint32_t>(envs.begin(), envs.end()), into->nodes());
    for (uint32_t i = 0; i < envs.size(); ++i) {
      const std::span<float> row = into->poses(i);
      std::copy_n(poses.data() + i * row.size(), row.size(), row.begin());
    }
  });
}

void PythonOwnMethods::CallOwn(size_t method, std::span<const uint8_t> request,
                               std::weak_ptr<const void>, Answer answer) {
  std::vector<uint8_t> data;
  const absl::Status status = adaptor_->Call([&] {
    const py::bytes given(reinterpret_cast<const char*>(request.data()),
                          request.size());
    const py::bytes answered =
        adaptor_->object().attr("call_own")(method, given);
    const auto text = static_cast<std::string_view>(answered);
    data.assign(text.begin(), text.end());
  });
  if (!status.ok()) return answer(status);
  answer(data);
}

absl::StatusOr<std::vector<std::string>> PythonRandomization::SetContract(
    std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  std::vector<std::string> unused;
  TANDEM_RETURN_IF_ERROR(adaptor_->Call([&] {
    unused = adaptor_->object()
                 .attr("set_contract")(
                     std::vector<uint32_t>(envs.begin(), envs.end()),
                     ContractValues(contract), seed)
                 .cast<std::vector<std::string>>();
  }));
  return unused;
}

absl::Status PythonStates::Save(uint32_t env, std::string* state) {
  return adaptor_->Call([&] {
    state->append(static_cast<std::string_view>(
        py::bytes(adaptor_->object().attr("save_state")(env))));
  });
}

absl::Status PythonStates::Stage(uint32_t env, absl::string_view state) {
  staged_[env] = std::string(state);
  return absl::OkStatus();
}

bool PythonStates::Load(uint32_t env) {
  const auto found = staged_.extract(env);
  if (found.empty()) return false;
  adaptor_->object().attr("load_state")(env, py::bytes(found.mapped()));
  return true;
}

PythonPorts::PythonPorts(PythonAdaptor* adaptor, uint32_t num_envs) {
  const auto names =
      adaptor->object().attr("ports").cast<std::set<std::string>>();
  if (names.contains("scene")) scene_.emplace(adaptor);
  if (names.contains("joints")) joints_.emplace(adaptor);
  if (names.contains("debug")) debug_.emplace(adaptor, num_envs);
  if (names.contains("camera")) {
    camera_.emplace(adaptor);
    frames_.emplace(adaptor);
  }
  if (names.contains("live_scene")) live_scene_.emplace(adaptor);
  if (names.contains("own")) own_.emplace(adaptor);
  if (names.contains("randomization")) randomization_.emplace(adaptor);
  if (names.contains("states")) states_.emplace(adaptor);
}

EnginePorts PythonPorts::ports() {
  const auto given = [](auto& port) { return port ? &*port : nullptr; };
  return {.randomization = given(randomization_),
          .mujoco = given(joints_),
          .scene = given(scene_),
          .camera = given(camera_),
          .debug = given(debug_),
          .states = given(states_),
          .methods = nullptr,
          .own = given(own_)};
}

void PythonPorts::Clear() {
  if (debug_) debug_->Clear();
  if (states_) states_->Clear();
}

}  // namespace tandem

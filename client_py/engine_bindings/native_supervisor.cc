#include "client_py/engine_bindings/native_supervisor.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/waiting.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/field.h"

namespace tandem {
namespace py = pybind11;
namespace {

// A signal that arrives directly before a wait is handled after this time.
constexpr double kLookForSignalsSecs = 0.1;

std::unique_ptr<SupervisorHost> CreateOrRaise(const std::string& name,
                                              const RegionSpec& spec,
                                              const WorkersSceneSpec& scene) {
  absl::StatusOr<std::unique_ptr<SupervisorHost>> host =
      SupervisorHost::Create(name, spec, scene);
  if (!host.ok()) Raise(host.status(), name);
  return *std::move(host);
}

WorkersSceneSpec SceneSpecOf(std::optional<SceneOfWorkers> scene) {
  if (!scene) return {};
  auto& [memory, nodes, model_file, program] = *scene;
  return {.memory = std::as_writable_bytes(std::span(
              memory.mutable_data(), static_cast<size_t>(memory.nbytes()))),
          .nodes = nodes,
          .model_file = std::move(model_file),
          .program = std::move(program)};
}

// The number, from 1, of a role or type by its name.
template <typename Names, typename NameOfOne>
uint8_t NumberOf(const Names& names, const std::string& name, const char* what,
                 NameOfOne name_of) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == name_of(names[i])) return static_cast<uint8_t>(i + 1);
  }
  RaiseInvalid(
      absl::StrCat("fields: expected a known ", what, ", found '", name, "'"));
}

}  // namespace

NativeSupervisor::NativeSupervisor(const std::string& name,
                                   const RegionSpec& spec,
                                   std::optional<SceneOfWorkers> scene)
    : name_(name),
      scene_(std::move(scene)),
      host_(CreateOrRaise(name, spec, SceneSpecOf(scene_))) {}

SupervisorHost& NativeSupervisor::host() const {
  if (host_ == nullptr) {
    Raise(MakeError(ErrorCode::kClientClosed,
                    "this NativeSupervisor was closed; create another"),
          name_);
  }
  return *host_;
}

void NativeSupervisor::Open() {
  const absl::Status status = host().Open();
  if (!status.ok()) Raise(status, name_);
}

py::str NativeSupervisor::Next(double timeout_secs, int input) {
  SupervisorHost& host = this->host();
  host.WatchInput(input);
  const Deadline deadline = Deadline::After(timeout_secs);
  for (;;) {
    const SupervisorEvent event = WithoutGil([&] {
      return host.Next(Deadline::At(std::min(
          deadline.at_ns(), Deadline::After(kLookForSignalsSecs).at_ns())));
    });
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    switch (event) {
      case SupervisorEvent::kClientLeft:
        return "client left";
      case SupervisorEvent::kWorkersReady:
        return "workers ready";
      case SupervisorEvent::kWorkersAnswered:
        return "workers answered";
      case SupervisorEvent::kWorkerDied:
        return "worker died";
      case SupervisorEvent::kFrameWanted:
        return "frame wanted";
      case SupervisorEvent::kInput:
        return "input";
      default:
        break;
    }
    if (deadline.PassedAt(MonotonicNanos())) return "timed out";
  }
}

void NativeSupervisor::End(const std::string& text) {
  host().End(ErrorCode::kPeerGone, text);
}

void NativeSupervisor::PublishFrame(
    const py::array_t<uint8_t, py::array::c_style>& frame, double last_reward,
    double rolling_return, double step_rate_hz, const std::string& metadata) {
  host().PublishFrame(std::as_bytes(std::span<const uint8_t>(
                          frame.data(), static_cast<size_t>(frame.nbytes()))),
                      {.last_reward = last_reward,
                       .rolling_return = rolling_return,
                       .step_rate_hz = step_rate_hz},
                      metadata);
}

RegionSpec SpecOfWorkers(uint32_t num_envs, uint32_t num_workers,
                         uint32_t obs_size, uint32_t act_size,
                         const std::string& task, const py::sequence& fields,
                         const FrameGeometry& frames) {
  RegionSpec spec = {.num_envs = num_envs,
                     .obs_size = obs_size,
                     .act_size = act_size,
                     .task = task,
                     .frames = frames,
                     .workers = num_workers,
                     .subsets = true};
  for (const py::handle row : fields) {
    auto [role, type, shape, path] =
        row.cast<std::tuple<std::string, std::string, std::vector<uint32_t>,
                            std::string>>();
    spec.fields.push_back(
        {.role = static_cast<FieldRole>(
             NumberOf(kFieldRoleNames, role, "role",
                      [](const char* name) { return name; })),
         .type = static_cast<FieldType>(
             NumberOf(kFieldTypes, type, "type",
                      [](const FieldTypeTraits& each) { return each.name; })),
         .shape = std::move(shape),
         .path = std::move(path)});
  }
  return spec;
}

}  // namespace tandem

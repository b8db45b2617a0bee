#include "client_py/engine_bindings/python_engine.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client_py/bindings/errors.h"
#include "engine_adapter/task_description.h"
#include "schema/layout/field.h"
#include "transport/region_spec.h"

namespace tandem {
namespace py = pybind11;
namespace {

// Role, dtype, shape and path, as Schema.fields of adaptor.py has them.
using FieldRow =
    std::tuple<std::string, std::string, std::vector<uint32_t>, std::string>;

// The names come from FIELD_TYPES and from adaptor.py.
FieldSpec SpecOf(const FieldRow& row) {
  const auto& [role, type, shape, path] = row;
  const auto found = std::ranges::find_if(
      kFieldTypes,
      [&type](const FieldTypeTraits& traits) { return type == traits.name; });
  return {.role = role == NameOf(FieldRole::kObs) ? FieldRole::kObs
                                                  : FieldRole::kAction,
          .type = static_cast<FieldType>(found - kFieldTypes.begin() + 1),
          .shape = shape,
          .path = path};
}

EngineSchema SchemaOf(const py::object& adaptor) {
  const py::object given = adaptor.attr("schema");
  const auto text = [&](const char* name) {
    return given.attr(name).cast<std::string>();
  };
  const auto texts = [&](const char* name) {
    return given.attr(name).cast<std::vector<std::string>>();
  };
  EngineSchema schema = {.task = text("task"),
                         .num_envs = given.attr("num_envs").cast<uint32_t>(),
                         .obs_size = given.attr("obs_size").cast<uint32_t>(),
                         .act_size = given.attr("act_size").cast<uint32_t>(),
                         .observation_names = texts("observation_names"),
                         .action_names = texts("action_names")};
  absl::StatusOr<TaskDescription> description = TaskDescriptionFrom(
      text("description"), schema.obs_size, schema.act_size);
  if (!description.ok()) Raise(description.status(), "");
  schema.description = *std::move(description);
  for (const FieldRow& row :
       given.attr("fields").cast<std::vector<FieldRow>>()) {
    schema.fields.push_back(SpecOf(row));
  }
  const py::object gpu = given.attr("gpu");
  if (!gpu.is_none()) {
    schema.gpu =
        GpuSchema{.cuda_device = gpu.attr("cuda_device").cast<int>(),
                  .fills_cpu = gpu.attr("fills_cpu").cast<bool>(),
                  .image_width = gpu.attr("image_width").cast<uint32_t>(),
                  .image_height = gpu.attr("image_height").cast<uint32_t>()};
  }
  std::tie(schema.images.width, schema.images.height) =
      given.attr("images").cast<std::pair<uint32_t, uint32_t>>();
  return schema;
}

py::array_t<int64_t> Indices(std::span<const uint32_t> envs) {
  py::array_t<int64_t> indices(static_cast<py::ssize_t>(envs.size()));
  std::ranges::copy(envs, indices.mutable_data());
  return indices;
}

// Results are written into arrays: a method that returns some is an error.
void CheckNone(const py::object& adaptor, const char* method,
               const py::object& result) {
  if (!result.is_none()) adaptor.attr("refuse_result")(method, result);
}

}  // namespace

PythonEngine::PythonEngine(const py::object& adaptor, bool keeps_first)
    : adaptor_(adaptor, keeps_first),
      schema_(SchemaOf(adaptor)),
      step_secs_(adaptor.attr("schema").attr("step_secs").cast<double>()),
      ports_(&adaptor_, schema_.num_envs),
      held_(Held{.reset = adaptor.attr("reset"),
                 .step = adaptor.attr("step"),
                 .all = py::slice(std::nullopt, std::nullopt, std::nullopt),
                 .arrays = {}}) {}

PythonEngine::~PythonEngine() {
  const Gil gil;
  held_.reset();
}

absl::Status PythonEngine::SetHost(EngineHost* host) {
  adaptor_.OnStop([host] { host->RequestStop(); });
  return adaptor_.Call(
      [&] { held_->arrays.emplace(*host, adaptor_.object().attr("arrays")); });
}

absl::Status PythonEngine::Reset(std::span<const ResetRequest> requests,
                                 const ResetIo& io) {
  return adaptor_.Call([&] {
    std::vector<uint32_t> drawn;  // all but those that continue from a state
    py::list seeds;
    for (const ResetRequest& request : requests) {
      PythonStates* const states = ports_.states();
      if (states != nullptr && states->Load(request.env)) continue;
      drawn.push_back(request.env);
      seeds.append(request.seed);
    }
    if (drawn.empty()) return;
    const py::array_t<int64_t> envs = Indices(drawn);
    PyObject* const arrays = held_->arrays->Begin(io);
    CheckNone(adaptor_.object(), "reset",
              held_->reset(envs, seeds, py::handle(arrays)));
    held_->arrays->End(io);
  });
}

absl::Status PythonEngine::Step(std::span<const uint32_t> envs,
                                const StepIo& io) {
  return adaptor_.Call([&] {
    PyObject* const arrays = held_->arrays->Begin(io);
    const py::object index = envs.size() == schema_.num_envs
                                 ? held_->all
                                 : py::object(Indices(envs));
    CheckNone(adaptor_.object(), "step",
              held_->step(index, py::handle(arrays)));
    held_->arrays->End(io);
  });
}

void PythonEngine::ClearClientState() {
  ports_.Clear();
  // A failure is in the log.
  (void)adaptor_.Call([&] { adaptor_.object().attr("clear_client_state")(); });
}

}  // namespace tandem

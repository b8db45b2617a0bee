// tandem._native: the transport for the Python package.
//
// Converts values and has no logic. tandem/_native.pyi documents it.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/os/shared_region.h"
#include "client_py/bindings/cuda_array.h"
#include "client_py/bindings/device_copies.h"
#include "client_py/bindings/env_rows.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/fitted_image.h"
#include "client_py/bindings/info_reader.h"
#include "client_py/bindings/native_client.h"
#include "client_py/bindings/native_frames.h"
#include "client_py/bindings/native_rpc.h"
#include "client_py/bindings/native_worker.h"
#include "client_py/bindings/region_views.h"
#include "client_py/bindings/vector_step.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frame_geometry.h"
#include "transport/region.h"

namespace tandem {
namespace py = pybind11;
namespace {

// Returns the pid that the region's live engine has written.
uint32_t EnginePid(const std::string& name) {
  const absl::StatusOr<LrbcHeader> header = PeekRegion(name);
  if (!header.ok()) Raise(header.status(), name);
  // relaxed: a private copy, for display only.
  return header->server_pid.load(std::memory_order_relaxed);
}

void CheckName(const std::string& name) {
  const absl::Status status = CheckRegionName(name);
  if (!status.ok()) Raise(status, name);
}

std::string RegionGpuPath(const std::string& name) {
  const absl::StatusOr<LrbcHeader> header = PeekRegion(name);
  if (!header.ok()) Raise(header.status(), name);
  return GpuPathText(*header);
}

void RemoveDead(const std::string& name) {
  const absl::Status status = RemoveIfDead(name);
  if (!status.ok()) Raise(status, name);
}

// Returns tandem.services.MethodId, made from the schema.
py::object MethodIds() {
  py::dict numbers;
  for (const rpc::MethodId method : rpc::EnumValuesMethodId()) {
    if (method == rpc::MethodId::NONE) continue;
    numbers[rpc::EnumNameMethodId(method)] = static_cast<int>(method);
  }
  py::object ids = py::module_::import("enum").attr("IntEnum")(
      "MethodId", numbers, py::arg("module") = "tandem.services");
  ids.attr("__doc__") =
      "Methods of the services, numbered and named as in the message schema.";
  return ids;
}

template <typename T>
void Property(py::class_<NativeClient>& type, const char* name,
              T RegionViews::*member) {
  type.def_property_readonly(name, [member](const NativeClient& client) {
    return client.views().*member;
  });
}

void DefineVectorStep(py::module_& module) {
  py::class_<VectorStep>(module, "VectorStep")
      .def(py::init([](NativeClient* client, const py::object& observations,
                       const py::object& final_observations,
                       const py::object& actions, const py::object& infos,
                       bool wide, bool copy, uint32_t autoreset,
                       std::optional<int64_t> choices) {
             return std::make_unique<VectorStep>(
                 client, VectorStep::Options{
                             .observations = observations,
                             .final_observations = final_observations,
                             .actions = actions,
                             .infos = infos,
                             .wide = wide,
                             .copy = copy,
                             .autoreset = static_cast<AutoresetMode>(autoreset),
                             .choices = choices});
           }),
           py::arg("client"), py::arg("observations"),
           py::arg("final_observations"), py::arg("actions"), py::arg("infos"),
           py::kw_only(), py::arg("wide") = false, py::arg("copy"),
           py::arg("autoreset"), py::arg("choices") = py::none(),
           py::keep_alive<1, 2>())
      .def("step", &VectorStep::Step, py::arg("actions"))
      .def("send", &VectorStep::Send, py::arg("actions"))
      .def("send_chosen", &VectorStep::SendChosen, py::arg("env_ids"))
      .def("recv", &VectorStep::Recv, py::arg("timeout") = py::none())
      .def("expect_reset", &VectorStep::ExpectReset, py::arg("mask"))
      .def("reset_results", &VectorStep::ResetResults);
}

void DefineEnvRows(py::module_& module) {
  module.attr("NO_ENVIRONMENT") = kNoEnvironment;
  module.attr("ROLLING_EPISODES") = EnvRows::kEpisodes;
  module.def("fit_image", &FitImage, py::arg("target").noconvert(),
             py::arg("image"));
  py::class_<EnvRows>(module, "EnvRows")
      .def(py::init([](const py::sequence& envs, const py::object& arrays,
                       const py::object& observations,
                       const py::object& final_observations,
                       const py::object& actions, const py::array& info_area,
                       const py::array& current, const py::type& stop,
                       const py::object& failure, const py::object& truncation,
                       uint32_t first_env, bool restarted) {
             return std::make_unique<EnvRows>(
                 EnvRows::Options{.envs = envs,
                                  .arrays = arrays,
                                  .observations = observations,
                                  .final_observations = final_observations,
                                  .actions = actions,
                                  .info_area = info_area,
                                  .current = current,
                                  .stop = stop,
                                  .failure = failure,
                                  .truncation = truncation,
                                  .first_env = first_env,
                                  .restarted = restarted});
           }),
           py::arg("envs"), py::arg("arrays"), py::kw_only(),
           py::arg("observations"), py::arg("final_observations"),
           py::arg("actions"), py::arg("info_area").noconvert(),
           py::arg("current").noconvert(), py::arg("stop"), py::arg("failure"),
           py::arg("truncation") = py::none(), py::arg("first_env") = 0,
           py::arg("restarted") = false)
      .def(
          "run",
          [](EnvRows& rows, uint32_t kind, uint32_t autoreset,
             const py::object& options) {
            return rows.Run(static_cast<ExchangeKind>(kind),
                            static_cast<AutoresetMode>(autoreset), options);
          },
          py::arg("kind"), py::arg("autoreset_mode"),
          py::arg("options") = py::none())
      .def("episodes", &EnvRows::Episodes)
      .def("continue_episode", &EnvRows::ContinueEpisode);
  py::class_<InfoReader>(module, "InfoReader")
      .def(py::init<uint32_t, const py::sequence&, py::function>(),
           py::arg("num_envs"), py::arg("areas"), py::arg("final_obs"))
      .def("merged", &InfoReader::Merged, py::arg("workers") = py::none())
      .def("rows", &InfoReader::Rows, py::arg("workers") = py::none());
}

void DefineWorkers(py::module_& module) {
  py::class_<NativeWorker>(module, "NativeWorker")
      .def(py::init<int, uint32_t, const std::string&, py::function>(),
           py::arg("fd"), py::arg("worker"), py::arg("wait"),
           py::arg("reset_options"))
      .def("serve", &NativeWorker::Serve, py::arg("rows"), py::arg("timeout"))
      .def("acknowledge", &NativeWorker::Acknowledge)
      .def_property_readonly("first_env", &NativeWorker::first_env)
      .def_property_readonly("num_envs", &NativeWorker::num_envs)
      .def_property_readonly("restarted", &NativeWorker::restarted)
      .def_property_readonly("arrays", &NativeWorker::arrays)
      .def_property_readonly("fields", &NativeWorker::fields)
      .def_property_readonly("current", &NativeWorker::current);
}

void DefineFrames(py::module_& module) {
  py::class_<NativeFrameWriter>(module, "NativeFrameWriter")
      .def(py::init<const std::string&, uint32_t, uint32_t, uint32_t, uint32_t,
                    uint32_t>(),
           py::arg("run_id"), py::arg("width"), py::arg("height"),
           py::arg("channels"), py::arg("capacity"), py::arg("metadata_size"))
      .def("publish", &NativeFrameWriter::Publish, py::arg("frame"),
           py::arg("last_reward"), py::arg("rolling_return"),
           py::arg("step_rate_hz"), py::arg("metadata"))
      .def("has_reader", &NativeFrameWriter::HasReader)
      .def("invalidate", &NativeFrameWriter::Invalidate)
      .def("close", &NativeFrameWriter::Close)
      .def_property_readonly("closed", &NativeFrameWriter::closed)
      .def_property_readonly("head", &NativeFrameWriter::head);
  py::class_<NativeFrameReader>(module, "NativeFrameReader")
      .def(py::init<const std::string&>(), py::arg("run_id"))
      .def("newest", &NativeFrameReader::Newest)
      .def("next", &NativeFrameReader::Next)
      .def("metrics", &NativeFrameReader::Metrics)
      .def("invalidated", &NativeFrameReader::Invalidated)
      .def("replaced", &NativeFrameReader::Replaced)
      .def("writer_alive", &NativeFrameReader::WriterAlive)
      .def("geometry", &NativeFrameReader::Geometry)
      .def("close", &NativeFrameReader::Close)
      .def_property_readonly("closed", &NativeFrameReader::closed)
      .def_property_readonly("dropped", &NativeFrameReader::dropped);
  py::class_<EpisodeReturns>(module, "EpisodeReturns")
      .def(py::init<size_t, int64_t, size_t, bool>(), py::arg("num_envs"),
           py::arg("only"), py::arg("window"), py::arg("resets_next"))
      .def("add", &EpisodeReturns::Add, py::arg("rewards"),
           py::arg("terminations"), py::arg("truncations"))
      .def("reset", &EpisodeReturns::Reset, py::arg("mask") = py::none())
      .def("rolling_return", &EpisodeReturns::RollingReturn)
      .def("rolling_length", &EpisodeReturns::RollingLength)
      .def_property_readonly("episodes", &EpisodeReturns::episodes)
      .def_property_readonly("last_reward", &EpisodeReturns::last_reward);
}

void DefineRpc(py::module_& module) {
  py::class_<ImageLease>(module, "NativeImage")
      .def_property_readonly("intact", &ImageLease::IsIntact);
  py::class_<NativeStream>(module, "NativeStream")
      .def("next", &NativeStream::Next, py::arg("timeout"))
      .def("close", &NativeStream::Close)
      .def_property_readonly("number", &NativeStream::number)
      .def_property_readonly("dropped", &NativeStream::dropped);
  py::class_<NativeRpc>(module, "NativeRpc")
      .def("call", &NativeRpc::Call, py::arg("method"), py::arg("request"),
           py::arg("timeout") = py::none())
      .def("open", &NativeRpc::Open, py::arg("method"), py::arg("request"),
           py::keep_alive<0, 1>())
      .def_property_readonly("timeout", &NativeRpc::timeout_secs);
  py::class_<NativeAttendant>(module, "NativeAttendant")
      .def(py::init<const std::string&, const std::string&, double>(),
           py::arg("name"), py::arg("label"), py::arg("timeout"))
      .def("set_timeout", &NativeAttendant::SetTimeout, py::arg("timeout"))
      .def("close", &NativeAttendant::Close)
      .def_property_readonly("rpc", &NativeAttendant::rpc,
                             py::return_value_policy::reference_internal)
      .def_property_readonly("num_envs", &NativeAttendant::num_envs)
      .def_property_readonly("engine_pid", &NativeAttendant::engine_pid)
      .def_property_readonly("closed", &NativeAttendant::closed);
}

}  // namespace
}  // namespace tandem

// Renames pybind11's entry point; ours, at the end, calls it.
#define PyInit__native InitInMainInterpreter
PYBIND11_MODULE(_native, module) {
  using namespace tandem;  // NOLINT: the module shows the namespace

  module.attr("ERROR_TABLE") = ErrorTable();
  py::dict modes;
  modes["SAME_STEP"] = static_cast<uint32_t>(AutoresetMode::kSameStep);
  modes["NEXT_STEP"] = static_cast<uint32_t>(AutoresetMode::kNextStep);
  modes["DISABLED"] = static_cast<uint32_t>(AutoresetMode::kDisabled);
  module.attr("AUTORESET_MODES") = modes;
  module.attr("MethodId") = MethodIds();
  module.attr("NEXT_OF_ENVIRONMENTS") = ClientSide::kNextOfEnvironments;
  module.attr("MAX_LABEL_BYTES") = kMaxLabelBytes;
  py::list field_types;
  for (const FieldTypeTraits& type : kFieldTypes) field_types.append(type.name);
  module.attr("FIELD_TYPES") = py::tuple(field_types);
  module.attr("MAX_FIELDS") = kMaxFields;
  module.attr("MAX_FIELD_DIMS") = kMaxFieldDims;
  module.attr("MAX_FIELD_VALUES") = kMaxFieldValues;
  module.attr("MAX_FIELD_PATH_BYTES") = kMaxFieldPathBytes;
  module.attr("MAX_RENDER_SIDE") = kMaxRenderSide;
  module.attr("MAX_IMAGES") = kMaxImages;
  module.attr("MAX_RENDER_SLOTS") = kMaxRenderSlots;
  module.attr("MAX_FRAME_HZ") = kMaxFrameHz;
  module.attr("MAX_FRAME_SIDE") = kMaxFrameSide;
  module.def("default_region_name", &DefaultRegionName);
  module.def("check_region_name", &CheckName, py::arg("name"));
  module.def("engine_pid", &EnginePid, py::arg("name"));
  module.def("remove_if_dead", &RemoveDead, py::arg("name"));
  module.def("region_names", [] {
    std::vector<std::string> names;
    for (const auto& [name, link] : SharedRegion::List()) {
      if (link == SharedRegion::Link::kSpare) names.push_back(name);
    }
    return names;
  });
  module.def("cuda_driver", &CudaDriverRow);
  module.def("region_gpu_path", &RegionGpuPath, py::arg("name"));

  py::class_<StepTimesSnapshot>(module, "StepTimes")
      .def_readonly("total_ns", &StepTimesSnapshot::total_ns)
      .def_property_readonly("count", &StepTimesSnapshot::count)
      .def("quantile", &StepTimesSnapshot::Quantile, py::arg("q"));
  py::class_<ClientStats>(module, "Stats")
      .def_readonly("exchanges", &ClientStats::exchanges)
      .def_readonly("shared_core_exchanges",
                    &ClientStats::shared_core_exchanges)
      .def_readonly("early_wakes", &ClientStats::early_wakes)
      .def_readonly("early_hits", &ClientStats::early_hits)
      .def_readonly("policy_ns", &ClientStats::policy_ns)
      .def_readonly("round_trips", &ClientStats::round_trips)
      .def_readonly("engine_steps", &ClientStats::engine_steps);

  DefineFrames(module);
  DefineRpc(module);

  DefineCudaArray(module);
  py::class_<NativeClient> client(module, "NativeClient");
  client
      .def(py::init<const std::string&, double, const std::string&, bool,
                    uint32_t>(),
           py::arg("name"), py::arg("timeout"), py::arg("wait"),
           py::arg("share_core"), py::arg("autoreset"))
      .def("send", &NativeClient::Send, py::arg("actions"))
      .def("recv", &NativeClient::Recv, py::arg("timeout") = py::none())
      .def("send_reset", &NativeClient::SendReset, py::arg("env_ids"),
           py::arg("seeds"))
      .def("post_lanes", &NativeClient::PostLanes, py::arg("workers"))
      .def("post_lane_resets", &NativeClient::PostLaneResets,
           py::arg("workers"), py::arg("env_ids"), py::arg("seeds"))
      .def("await_lanes", &NativeClient::AwaitLanes, py::arg("min_count"),
           py::arg("timeout") = py::none())
      .def("check_lanes", &NativeClient::CheckLanes, py::arg("workers"))
      .def("take_lanes", &NativeClient::TakeLanes, py::arg("workers"))
      .def_property_readonly("open_lanes", &NativeClient::OpenLanes)
      .def_property_readonly("ready_lanes", &NativeClient::ReadyLanes)
      .def_property_readonly("worker_rows", &NativeClient::WorkerRowsOf)
      .def_property_readonly("awaited_workers", &NativeClient::AwaitedWorkers)
      .def_property_readonly("last_failure", &NativeClient::LastFailure)
      .def("cuda_arrays", &NativeClient::CudaArrays)
      .def_property_readonly("gpu_path", &NativeClient::GpuPath)
      .def_property_readonly("has_cpu_obs", &NativeClient::HasCpuObs)
      .def("drawn_frame", &NativeClient::DrawnFrame,
           py::arg("timeout") = py::none())
      .def("reconnect", &NativeClient::Reconnect,
           py::arg("timeout") = py::none())
      .def("close", &NativeClient::Close)
      .def("stats", &NativeClient::Stats)
      .def("set_timeout", &NativeClient::SetTimeout, py::arg("timeout"))
      .def("serve_environments", &NativeClient::ServeEnvironments)
      .def("wake_engine", &NativeClient::WakeEngine)
      .def("show_own_run", &NativeClient::ShowOwnRun, py::kw_only(),
           py::arg("episodes"), py::arg("last_reward"),
           py::arg("rolling_return"), py::arg("episode_length"))
      .def_property_readonly("rpc", &NativeClient::rpc,
                             py::return_value_policy::reference_internal)
      .def_property_readonly("has_frames", &NativeClient::has_frames)
      .def_property_readonly("image_step", &NativeClient::ImageStep)
      .def_property_readonly("pending", &NativeClient::pending)
      .def_property_readonly("closed", &NativeClient::closed);
  py::class_<DeviceCopies>(module, "DeviceCopies")
      .def(py::init<NativeClient*, int, const py::list&, bool>(),
           py::arg("client"), py::arg("device"), py::arg("views"),
           py::arg("overlaps"), py::keep_alive<1, 2>())
      .def("begin", &DeviceCopies::Begin)
      .def("take_actions", &DeviceCopies::TakeActions, py::arg("pointer"),
           py::arg("nbytes"), py::arg("stream"));
  module.attr("StepMethod") = MakeStepMethodType();
  DefineVectorStep(module);
  DefineEnvRows(module);
  DefineWorkers(module);
  Property(client, "obs", &RegionViews::obs);
  Property(client, "actions", &RegionViews::actions);
  Property(client, "rewards", &RegionViews::rewards);
  Property(client, "dones", &RegionViews::dones);
  Property(client, "truncateds", &RegionViews::truncateds);
  Property(client, "terminateds", &RegionViews::terminateds);
  Property(client, "resets", &RegionViews::resets);
  Property(client, "final_obs", &RegionViews::final_obs);
  Property(client, "infos", &RegionViews::infos);
  Property(client, "final_infos", &RegionViews::final_infos);
  Property(client, "images", &RegionViews::images);
  Property(client, "final_images", &RegionViews::final_images);
  Property(client, "fields", &RegionViews::fields);
  Property(client, "num_envs", &RegionViews::num_envs);
  Property(client, "obs_size", &RegionViews::obs_size);
  Property(client, "act_size", &RegionViews::act_size);
  Property(client, "task", &RegionViews::task);
  Property(client, "description", &RegionViews::description);
  Property(client, "engine_pid", &RegionViews::engine_pid);
  Property(client, "region_address", &RegionViews::address);
  Property(client, "offsets", &RegionViews::offsets);
}
#undef PyInit__native

// Refuses subinterpreters. There, PyGILState_Ensure in pybind11's entry point
// blocks forever: it requests the main interpreter's GIL, which its own thread
// holds.
extern "C" PYBIND11_EXPORT PyObject* PyInit__native() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) {
    return InitInMainInterpreter();
  }
  PyErr_SetString(PyExc_ImportError,
                  "tandem: expected Python's main interpreter, found a "
                  "subinterpreter; next: import it in the main one, or start a "
                  "process for it");
  return nullptr;
}

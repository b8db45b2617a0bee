// tandem._engine: the engine's side of a region, for engines in Python, and for
// supervisors of environments in Python.
//
// Converts values and has no logic. tandem/_engine.pyi documents it.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client_py/engine_bindings/native_supervisor.h"
#include "client_py/engine_bindings/serving.h"

PYBIND11_MODULE(_engine, module) {
  using namespace tandem;  // NOLINT: the module shows the namespace
  namespace py = pybind11;
  module.def(
      "serve",
      [](const py::object& adaptor, const std::string& name,
         std::optional<uint64_t> seed, const std::string& wait,
         const std::string& services, bool group_access,
         const std::optional<FrameRow>& frames, const py::object& stopping) {
        std::optional<FrameOptions> shown;
        if (frames) {
          const auto& [width, height, hz, complete, envs] = *frames;
          shown = FrameOptions{.width = width,
                               .height = height,
                               .envs = envs,
                               .hz = hz,
                               .complete = complete};
        }
        Serve(adaptor,
              {.name = name,
               .seed = seed,
               .wait = wait,
               .services = services,
               .group_access = group_access,
               .frames = shown},
              stopping);
      },
      py::arg("adaptor"), py::kw_only(), py::arg("name"), py::arg("seed"),
      py::arg("wait"), py::arg("services"), py::arg("group_access"),
      py::arg("frames"), py::arg("stopping"));
  py::class_<NativeSupervisor>(module, "NativeSupervisor")
      .def(py::init([](const std::string& name, uint32_t num_envs,
                       uint32_t num_workers, uint32_t obs_size,
                       uint32_t act_size, const std::string& task,
                       const py::sequence& fields, uint32_t frame_width,
                       uint32_t frame_height, uint32_t frame_slots,
                       uint32_t metadata_bytes,
                       const std::optional<SceneOfWorkers>& scene) {
             return std::make_unique<NativeSupervisor>(
                 name,
                 SpecOfWorkers(num_envs, num_workers, obs_size, act_size, task,
                               fields,
                               {.width = frame_width,
                                .height = frame_height,
                                .capacity = frame_slots,
                                .metadata_bytes = metadata_bytes}),
                 scene);
           }),
           py::arg("name"), py::arg("num_envs"), py::arg("num_workers"),
           py::arg("obs_size"), py::arg("act_size"), py::arg("task"),
           py::arg("fields"), py::kw_only(), py::arg("frame_width") = 0,
           py::arg("frame_height") = 0, py::arg("frame_slots") = 0,
           py::arg("metadata_bytes") = 0, py::arg("scene") = py::none())
      .def("open", &NativeSupervisor::Open)
      .def("next", &NativeSupervisor::Next, py::arg("timeout"),
           py::arg("input"))
      .def("reset_workers", &NativeSupervisor::ResetWorkers)
      .def("message_workers", &NativeSupervisor::MessageWorkers)
      .def("stop_workers", &NativeSupervisor::StopWorkers)
      .def("replace_worker", &NativeSupervisor::ReplaceWorker,
           py::arg("worker"))
      .def("worker_text", &NativeSupervisor::WorkerText, py::arg("worker"))
      .def("end", &NativeSupervisor::End, py::arg("text"))
      .def("close", &NativeSupervisor::Close)
      .def("frames_watched", &NativeSupervisor::FramesWatched)
      .def("publish_frame", &NativeSupervisor::PublishFrame, py::arg("frame"),
           py::arg("last_reward"), py::arg("rolling_return"),
           py::arg("step_rate_hz"), py::arg("metadata"))
      .def("answer_frame", &NativeSupervisor::AnswerFrame)
      .def_property_readonly("dead_worker", &NativeSupervisor::dead_worker)
      .def_property_readonly("fd", &NativeSupervisor::fd)
      .def_property_readonly("answered_at", &NativeSupervisor::answered_at)
      .def_property_readonly("steps", &NativeSupervisor::steps);
  module.def("serve_by_command_line", &ServeByCommandLine, py::arg("arguments"),
             py::arg("usage"), py::arg("flags"), py::arg("make"));
}

// tandem._engine: the engine's side of a region, for engines in Python.
//
// Converts values and has no logic. tandem/_engine.pyi documents it.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client_py/engine_bindings/serving.h"

PYBIND11_MODULE(_engine, module) {
  using namespace tandem;  // NOLINT: the module shows the namespace
  namespace py = pybind11;
  module.def(
      "serve",
      [](const py::object& adaptor, const std::string& name,
         std::optional<uint64_t> seed, const std::string& wait,
         const std::string& services, bool group_access,
         const py::object& stopping) {
        Serve(adaptor,
              {.name = name,
               .seed = seed,
               .wait = wait,
               .services = services,
               .group_access = group_access},
              stopping);
      },
      py::arg("adaptor"), py::kw_only(), py::arg("name"), py::arg("seed"),
      py::arg("wait"), py::arg("services"), py::arg("group_access"),
      py::arg("stopping"));
  module.def("serve_by_command_line", &ServeByCommandLine, py::arg("arguments"),
             py::arg("usage"), py::arg("flags"), py::arg("make"));
}

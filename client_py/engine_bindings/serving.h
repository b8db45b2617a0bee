// Serve, ServeByCommandLine: the loops of an engine in Python.
//
// Data flow: tandem.serving -> PythonEngine, EngineHost -> clients, until a
// request to stop.
// Ownership: the caller's thread serves, and owns engine and host. Both need
// the GIL, and release it while no Python code runs.

#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine_adapter/frame_source.h"

namespace tandem {

// Width, height, rate and environments of frames.
using FrameRow =
    std::tuple<uint32_t, uint32_t, double, bool, std::vector<uint32_t>>;

struct ServeOptions {
  std::string name;
  std::optional<uint64_t> seed = {};
  std::string wait = "adaptive";  // a WaitStrategy's name
  std::string services = "all";   // as ParseServices has them
  bool group_access = false;
  std::optional<FrameOptions> frames = {};
};

// Serves until `stopping`, called ten times a second and after each signal,
// returns true. Then the region is removed. Raises:
//  - the exception of a signal handler, or of `stopping`;
//  - that of the engine's first reset; later ones only if they are no
//    Exception, such as SystemExit;
//  - the errors of EngineHost::Create.
void Serve(const pybind11::object& adaptor, const ServeOptions& options,
           const pybind11::object& stopping);

// A flag of the engine, and its default.
using FlagRow = std::pair<std::string, double>;

// The main function of an engine's program: RunServer of
// engine_adapter/server_main.h, which has the flags and the exit codes.
// `make` gets num_envs and the values of `flags`, and returns an adaptor. The
// signal handlers for SIGINT and SIGTERM are the server's from here on.
// Raises InvalidArgument if a flag has the name of a standard flag.
int ServeByCommandLine(const std::vector<std::string>& arguments,
                       const std::string& usage,
                       const std::vector<FlagRow>& flags,
                       const pybind11::object& make);

}  // namespace tandem

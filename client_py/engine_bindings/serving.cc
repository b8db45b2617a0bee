#include "client_py/engine_bindings/serving.h"

#include <pybind11/stl.h>

#include <memory>

#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/waiting.h"
#include "client_py/engine_bindings/python_adaptor.h"
#include "client_py/engine_bindings/python_engine.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/server_main.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace py = pybind11;
namespace {

// A signal that arrives directly before a wait is handled after this time.
constexpr int64_t kPollNs = 100'000'000;

absl::Status Work(PythonEngine* engine, const EngineWork& work) {
  return work.steps.empty() ? engine->Reset(work.resets, work.reset_io)
                            : engine->Step(work.steps, work.step_io);
}

absl::Status Loop(PythonEngine* engine, EngineHost* host,
                  const py::object& stopping) {
  TANDEM_RETURN_IF_ERROR(engine->SetHost(host));
  int64_t poll_at_ns = MonotonicNanos() + kPollNs;
  while (!host->StopRequested()) {
    const EngineWork* const work = host->Next(Deadline::At(poll_at_ns));
    if (work != nullptr) {
      TANDEM_RETURN_IF_ERROR(
          host->Done(Guarded([&] { return Work(engine, *work); })));
    }
    const int64_t now_ns = MonotonicNanos();
    if (work != nullptr && now_ns < poll_at_ns) continue;
    if (engine->adaptor().Interrupts(stopping)) break;
    poll_at_ns = now_ns + kPollNs;
  }
  return absl::OkStatus();
}

absl::StatusOr<EngineHost::Options> HostOptions(const ServeOptions& given,
                                                PythonEngine* engine) {
  EngineHost::Options options = {
      .name = given.name,
      .seed = given.seed,
      .wait = WaitStrategyNamed(given.wait).value_or(WaitStrategy::kAdaptive),
      .group_access = given.group_access,
      .frames = given.frames,
      .log = LogLine};
  TANDEM_RETURN_IF_ERROR(ParseServices(given.services, &options.rpc));
  options.opened = [engine](const std::string& name, const RegionMapping&) {
    engine->adaptor().SetOpened();
    LogLine(absl::StrCat(
        "serving '", name, "' (", engine->schema().task,
        "): ", engine->schema().num_envs,
        " environments; attach with tandem.SharedMemoryClient('", name, "')"));
  };
  return options;
}

absl::Status ServeEngine(PythonEngine* engine, const ServeOptions& given,
                         const py::object& stopping) {
  TANDEM_ASSIGN_OR_RETURN(EngineHost::Options options,
                          HostOptions(given, engine));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<EngineHost> host,
                          EngineHost::CreateTicked(engine, std::move(options)));
  return Loop(engine, host.get(), stopping);
}

void CheckFlags(const std::vector<FlagRow>& flags) {
  for (const auto& [name, value] : flags) {
    if (name != "help" && absl::FindCommandLineFlag(name) == nullptr) continue;
    RaiseInvalid(absl::StrCat("argument '", name,
                              "' of the engine: expected a name that no "
                              "standard flag has, found --",
                              name, "; rename the argument"));
  }
}

// Serves by the host's own loop, which the server's signal handlers stop.
absl::Status Run(PythonEngine* engine, EngineHost* host) {
  TANDEM_RETURN_IF_ERROR(engine->SetHost(host));
  engine->adaptor().SetOpened();
  TANDEM_RETURN_IF_ERROR(host->CallEngine(engine));
  host->Run();
  if (!engine->adaptor().keeps()) return absl::OkStatus();
  const Gil gil;
  try {
    engine->adaptor().RaiseKept();
    return absl::OkStatus();
  } catch (py::error_already_set& error) {
    return StatusOf(error);
  }
}

}  // namespace

void Serve(const py::object& adaptor, const ServeOptions& options,
           const py::object& stopping) {
  PythonEngine engine(adaptor, /*keeps_first=*/true);
  const absl::Status status = WithoutGil([&] {
    return Guarded([&] { return ServeEngine(&engine, options, stopping); });
  });
  engine.adaptor().RaiseKept();
  if (!status.ok()) Raise(status, options.name);
}

int ServeByCommandLine(const std::vector<std::string>& arguments,
                       const std::string& usage,
                       const std::vector<FlagRow>& flags,
                       const py::object& make) {
  CheckFlags(flags);
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  std::vector<double> values;
  for (const auto& [name, value] : flags) values.push_back(value);
  std::vector<OwnFlag> own;
  for (size_t i = 0; i < flags.size(); ++i) {
    own.push_back({.name = flags[i].first, .value = &values[i]});
  }
  PythonEngine* engine = nullptr;  // the server owns it
  const auto make_engine = [&](const ServerOptions& options)
      -> absl::StatusOr<std::unique_ptr<EngineBase>> {
    const Gil gil;
    try {
      auto made = std::make_unique<PythonEngine>(make(options.num_envs, values),
                                                 /*keeps_first=*/false);
      engine = made.get();
      return std::unique_ptr<EngineBase>(std::move(made));
    } catch (py::error_already_set& error) {
      return StatusOf(error);
    }
  };
  return WithoutGil([&] {
    return RunTickedServer(
        static_cast<int>(argv.size()), argv.data(), usage, make_engine,
        [&](EngineHost* host) { return Run(engine, host); }, own);
  });
}

}  // namespace tandem

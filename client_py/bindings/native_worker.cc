#include "client_py/bindings/native_worker.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/region_views.h"
#include "client_py/bindings/waiting.h"
#include "schema/layout/lrbc.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace py = pybind11;
namespace {

WorkerSide AttachOrRaise(int fd, uint32_t worker, const std::string& wait) {
  absl::StatusOr<WorkerSide> side =
      WorkerSide::Attach(fd, worker, {.wait = WaitStrategyNamed(wait).value()});
  if (!side.ok()) Raise(side.status(), "");
  return *std::move(side);
}

}  // namespace

NativeWorker::NativeWorker(int fd, uint32_t worker, const std::string& wait,
                           py::function reset_options)
    : side_(AttachOrRaise(fd, worker, wait)),
      restarted_(side_.restarted()),
      arrays_(ArrayViews(side_.arrays(), side_.mapping())),
      fields_(FieldViews(side_.arrays(), side_.mapping())),
      current_(py::array_t<uint32_t>(
          1, reinterpret_cast<uint32_t*>(side_.shown_env()),
          KeeperOf(side_.mapping()))),
      reset_options_(std::move(reset_options)) {}

py::str NativeWorker::Serve(EnvRows* rows, double timeout_secs) {
  const Deadline deadline = Deadline::After(timeout_secs);
  for (;;) {
    switch (WithoutGil([&] { return side_.Next(deadline); })) {
      case WorkerEvent::kExchange:
      case WorkerEvent::kLane:
        Advance(rows);
        break;
      case WorkerEvent::kReset:
        rows->ForgetEpisodes();
        side_.Acknowledge();
        break;
      case WorkerEvent::kMessage:
        return "message";
      case WorkerEvent::kStop:
        side_.Acknowledge();
        return "stop";
      case WorkerEvent::kSupervisorGone:
        return "supervisor gone";
      case WorkerEvent::kTimedOut:
        return "timed out";
      case WorkerEvent::kInterrupted:
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        break;
    }
  }
}

void NativeWorker::Advance(EnvRows* rows) {
  const std::span<const uint8_t> flags =
      side_.arrays().resets.subspan(side_.first_env(), side_.num_envs());
  const bool only_resets =
      side_.kind() == ExchangeKind::kResetOnly ||
      (std::ranges::any_of(flags, IsReset) &&
       std::ranges::find(flags, uint8_t{0}) == flags.end());
  const py::object options = only_resets ? reset_options_() : py::none();
  const py::list failures =
      rows->Run(side_.kind(), side_.autoreset_mode(), options);
  for (const py::handle failure : failures) {
    const auto [row, exception, text] =
        failure.cast<std::tuple<uint32_t, py::object, py::str>>();
    // Its text may have lone surrogates, which UTF-8 has not.
    const auto utf8 = py::reinterpret_steal<py::bytes>(
        PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
    side_.Fail(side_.first_env() + row, std::string(utf8));
  }
  side_.CountSteps(side_.num_envs());
  side_.Finish();
}

}  // namespace tandem

// tandemctl: submits runs to a tandem-daemon and says how they are. The command
// line is in ctl_options, its --help in ctl_help.

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"
#include "slow_lane/ctl/exit_code.h"
#include "slow_lane/ctl/export_command.h"
#include "slow_lane/ctl/logs_command.h"
#include "slow_lane/ctl/run_commands.h"
#include "slow_lane/ctl/watch_command.h"
#include "slow_lane/runs/callers_folder.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

ExitCode ToExitCode(const absl::Status& status) {
  return status.ok() ? kDone : Fail(status);
}

ExitCode Run(Connection* daemon, const SubmitCommand& command) {
  const absl::StatusOr<std::string> run_id = Submit(daemon, command);
  if (!run_id.ok()) return Fail(run_id.status());
  std::cout << *run_id << std::endl;
  return command.watch ? RunWatch(daemon, {.run_id = *run_id}) : kDone;
}
ExitCode Run(Connection* daemon, const ListCommand& command) {
  return RunList(daemon, command);
}
ExitCode Run(Connection* daemon, const WatchCommand& command) {
  return RunWatch(daemon, command);
}
ExitCode Run(Connection* daemon, const RunsCommand& command) {
  return RunRuns(daemon, command);
}
ExitCode Run(Connection* daemon, const LogsCommand& command) {
  return ToExitCode(ShowLogs(daemon, command));
}
ExitCode Run(Connection* daemon, const ExportCommand& command) {
  return ToExitCode(ExportEvents(daemon, command));
}
ExitCode Run(Connection* daemon, const HealthCommand& /*command*/) {
  return RunHealth(daemon);
}

bool Watches(const CtlOptions& options) {
  const auto* const submit = std::get_if<SubmitCommand>(&options.command);
  return std::holds_alternative<WatchCommand>(options.command) ||
         (submit != nullptr && submit->watch);
}

ExitCode Main(const std::vector<absl::string_view>& words) {
  if (const absl::Status s = EnterCallersFolder(); !s.ok()) return Fail(s);
  const char* const variable = std::getenv("TANDEM_DAEMON");
  const absl::StatusOr<CtlOptions> options =
      ParseCtlOptions(words, variable == nullptr ? "" : variable);
  if (!options.ok()) return Fail(options.status(), kWrongUsage);
  if (const auto* help = std::get_if<HelpCommand>(&options->command)) {
    std::cout << help->text;
    return kDone;
  }
  if (Watches(*options)) BlockWatchSignals();
  Connection daemon(options->daemon, options->daemon_source);
  return std::visit(
      [&daemon](const auto& command) {
        if constexpr (std::is_same_v<std::decay_t<decltype(command)>,
                                     HelpCommand>) {
          return kDone;
        } else {
          return Run(&daemon, command);
        }
      },
      options->command);
}

}  // namespace
}  // namespace tandem::slow_lane

int main(int argc, char** argv) {
  using tandem::slow_lane::Fail;
  const tandem::slow_lane::ExitCode code = tandem::slow_lane::Main(
      std::vector<absl::string_view>(argv + 1, argv + argc));
  if (!std::cout.flush()) {
    return Fail(tandem::MakeSystemError("write", "standard output", errno));
  }
  return code;
}

// tandemctl: submits runs to a tandem-daemon and says how they are. The command
// line is in ctl_options, its --help in ctl_help.

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "program/standard_output.h"
#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"
#include "slow_lane/ctl/exit_code.h"
#include "slow_lane/ctl/export_command.h"
#include "slow_lane/ctl/logs_command.h"
#include "slow_lane/ctl/run_commands.h"
#include "slow_lane/ctl/watch_command.h"
#include "slow_lane/runs/callers_folder.h"
#include "slow_lane/wire/token_file.h"

namespace tandem::slow_lane {
namespace {

ExitCode ToExitCode(const absl::Status& status) {
  return status.ok() ? kDone : Fail(status);
}

ExitCode Run(Connection* daemon, const SubmitCommand& command) {
  const absl::StatusOr<std::string> run_id = Submit(daemon, command);
  if (!run_id.ok()) return Fail(run_id.status());
  const absl::Status printed = Print(absl::StrCat(*run_id, "\n"));
  if (!printed.ok()) {
    return Fail(absl::Status(
        printed.code(),
        absl::StrCat(*run_id, " was submitted; ", printed.message())));
  }
  return command.watch
             ? RunWatch(daemon, {.run_id = *run_id, .submitted = true})
             : kDone;
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

// The flag's, else the variable's; empty: neither names a file.
absl::StatusOr<std::string> TokenOf(const CtlOptions& options) {
  const char* const variable = std::getenv(kTokenVariable);
  const bool by_flag = !options.token_file.empty();
  const std::string file = by_flag               ? options.token_file
                           : variable != nullptr ? variable
                                                 : "";
  if (file.empty()) return "";
  absl::StatusOr<std::string> token = ReadToken(file);
  if (token.ok()) return token;
  return absl::Status(token.status().code(),
                      absl::StrCat(by_flag ? "--token_file" : kTokenVariable,
                                   ": ", token.status().message()));
}

bool Watches(const CtlOptions& options) {
  const auto* const submit = std::get_if<SubmitCommand>(&options.command);
  return std::holds_alternative<WatchCommand>(options.command) ||
         (submit != nullptr && submit->watch);
}

// Else the first file or socket that is opened would be taken for it.
absl::Status CheckStandardFiles() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) >= 0) continue;
    if (file == STDOUT_FILENO) {
      return absl::FailedPreconditionError(
          "expected standard output to be open, found it closed"
          "\nNext: >/dev/null, if nobody is to read it");
    }
    open("/dev/null", O_RDWR);
  }
  return absl::OkStatus();
}

ExitCode Main(const std::vector<absl::string_view>& words) {
  if (const absl::Status s = CheckStandardFiles(); !s.ok()) return Fail(s);
  if (const absl::Status s = EnterCallersFolder(); !s.ok()) return Fail(s);
  const char* const variable = std::getenv("TANDEM_DAEMON");
  const absl::StatusOr<CtlOptions> options =
      ParseCtlOptions(words, variable == nullptr ? "" : variable);
  if (!options.ok()) return Fail(options.status(), kWrongUsage);
  if (const auto* help = std::get_if<HelpCommand>(&options->command)) {
    return ToExitCode(Print(help->text));
  }
  const absl::StatusOr<std::string> token = TokenOf(*options);
  if (!token.ok()) return Fail(token.status());
  if (Watches(*options)) BlockWatchSignals();
  Connection daemon(options->daemon, options->daemon_source, *token);
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
  return tandem::slow_lane::Main(
      std::vector<absl::string_view>(argv + 1, argv + argc));
}

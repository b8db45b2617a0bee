#include "viz/core/daemon_starter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/posix/open_above_standard_streams.h"
#include "base/os/unique_fd.h"
#include "base/printable.h"
#include "program/listening_sockets.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/daemon_client.h"
#include "viz/core/program_start.h"

ABSL_FLAG(std::string, daemon_target, "auto",
          "HOST:PORT or unix:PATH of the slow lane's daemon; auto: "
          "$TANDEM_DAEMON, or else 127.0.0.1:50055; empty: none");
ABSL_FLAG(
    std::optional<bool>, daemon, std::nullopt,
    "true: starts a daemon at --daemon_target, unless one is there; it goes on "
    "when this program ends; default: true if the address is this machine's, "
    "for the viewer without --snapshot and the page with --control");
ABSL_FLAG(std::string, data_dir, "",
          "FOLDER of a daemon that this program starts; empty: tandem/data in "
          "$XDG_STATE_HOME, or else in ~/.local/state");

namespace tandem {
namespace {

constexpr double kPatienceSecs = 10;

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

}  // namespace

absl::Status StartDaemon(const std::string& data_dir,
                         const std::string& target) {
  const DaemonClient client(target);
  if (client.ListRuns().ok()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::string program,
                          FindProgram("tandem-daemon", "slow_lane/daemon/"));
  std::vector<std::string> words = {program,
                                    absl::StrCat("--data_dir=", data_dir)};
  if (absl::string_view socket = target;
      absl::ConsumePrefix(&socket, "unix:")) {
    words.push_back(absl::StrCat("--socket=", socket));
    words.emplace_back("--listen=none");
  } else {
    words.push_back(absl::StrCat("--listen=", target));
  }
  const std::string log =
      absl::StrCat(absl::StripSuffix(data_dir, "/"), ".log");
  std::error_code error;  // open's error says more
  std::filesystem::create_directories(std::filesystem::path(log).parent_path(),
                                      error);
  const UniqueFd null(OpenAboveStandardStreams("/dev/null", O_RDONLY));
  // Not a pipe of this program's output: that would stay open.
  const UniqueFd output(OpenAboveStandardStreams(
      log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (!output.valid()) return MakeSystemError("open", log, errno);
  TANDEM_ASSIGN_OR_RETURN(
      const pid_t pid,
      StartProgram(std::move(words), {.input = null.get(),
                                      .output = output.get(),
                                      .errors = output.get()}));
  const Deadline deadline = Deadline::After(kPatienceSecs);
  absl::Status answer;
  while (!(answer = client.ListRuns().status()).ok()) {
    int how = 0;
    if (waitpid(pid, &how, WNOHANG) == pid) {
      return MakeError(ErrorCode::kNotReady,
                       absl::StrCat("expected a daemon that runs, found that "
                                    "it has exited with code ",
                                    WIFEXITED(how) ? WEXITSTATUS(how) : -1,
                                    ": ", LastLine(log), "; its log is ", log));
    }
    if (deadline.PassedAt(MonotonicNanos())) {
      return MakeError(
          ErrorCode::kNotReady,
          absl::StrCat("expected a daemon that answers within ", kPatienceSecs,
                       " s, found: ", answer.message()));
    }
    poll(nullptr, 0, 50);
  }
  return absl::OkStatus();
}

absl::StatusOr<DaemonOptions> DaemonOptionsOfFlags(bool by_default) {
  DaemonOptions options = {.target = absl::GetFlag(FLAGS_daemon_target),
                           .flag = absl::GetFlag(FLAGS_daemon),
                           .by_default = by_default,
                           .data_dir = absl::GetFlag(FLAGS_data_dir)};
  if (options.target == "auto") options.target = DaemonTarget();
  if (options.target.empty() && options.flag.value_or(false)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "expected an address for --daemon, found an empty --daemon_target");
  }
  return options;
}

absl::Status StartWantedDaemon(const std::string& program,
                               const DaemonOptions& options) {
  if (options.target.empty() || !options.flag.value_or(options.by_default)) {
    return absl::OkStatus();
  }
  const bool is_here = absl::StartsWith(options.target, "unix:") ||
                       LoopbackOf(options.target).ok();
  if (!options.flag.has_value() && !is_here) return absl::OkStatus();
  const absl::Status started = StartDaemon(
      options.data_dir.empty() ? DefaultDataDir() : options.data_dir,
      options.target);
  if (started.ok() || options.flag.has_value()) return started;
  std::cerr << program << ": continues without a daemon: "
            << PrintableLines(started.message())
            << "; next: --nodaemon, or --daemon_target with the address of one"
            << std::endl;
  return absl::OkStatus();
}

std::string DefaultDataDir() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = variable("XDG_STATE_HOME");
  if (!absl::StartsWith(folder, "/")) {
    folder = absl::StrCat(variable("HOME"), "/.local/state");
  }
  return absl::StrCat(folder, "/tandem/data");
}

}  // namespace tandem

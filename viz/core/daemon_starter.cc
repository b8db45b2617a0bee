#include "viz/core/daemon_starter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "program/listening_sockets.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/daemon_client.h"

ABSL_FLAG(std::string, daemon_target, "auto",
          "HOST:PORT or unix:PATH of the slow lane's daemon; auto: "
          "$TANDEM_DAEMON, or else 127.0.0.1:50055; empty: none");
ABSL_FLAG(std::optional<bool>, daemon, std::nullopt,
          "true: starts a daemon at --daemon_target, unless one is there; it "
          "goes on when this program ends; default: true if the address is "
          "this machine's, for the viewer without --snapshot and the page with "
          "--control");
ABSL_FLAG(std::string, data_dir, "",
          "FOLDER of a daemon that this program starts; empty: tandem/data in "
          "$XDG_STATE_HOME, or else in ~/.local/state");

namespace tandem {
namespace {

constexpr absl::string_view kProgram = "tandem-daemon";
constexpr double kPatienceSecs = 10;

// Starts the program in a session of its own, so that Ctrl-C ends this program
// alone. Its output goes to `log`: a pipe of this program's output would stay
// open.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> words,
                            const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup free_actions = [&] {
    posix_spawn_file_actions_destroy(&actions);
  };
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup free_attributes = [&] {
    posix_spawnattr_destroy(&attributes);
  };
  sigset_t none;
  sigemptyset(&none);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, words[0].c_str(), &actions, &attributes,
                                arguments.data(), environ);
  if (error != 0) return MakeSystemError("posix_spawn", words[0], error);
  return pid;
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

}  // namespace

absl::StatusOr<std::string> FindDaemonProgram() {
  std::vector<std::string> candidates;
  std::array<char, 4096> self;
  const ssize_t bytes = readlink("/proc/self/exe", self.data(), self.size());
  if (bytes > 0) {
    const absl::string_view program(self.data(), static_cast<size_t>(bytes));
    candidates.push_back(
        absl::StrCat(program.substr(0, program.rfind('/') + 1), kProgram));
  }
  if (const char* path = std::getenv("PATH")) {
    for (const absl::string_view folder : absl::StrSplit(path, ':')) {
      candidates.push_back(absl::StrCat(folder, "/", kProgram));
    }
  }
  candidates.push_back(absl::StrCat("slow_lane/daemon/", kProgram));
  for (const std::string& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("expected the program ", kProgram,
                                ", found it neither beside this program nor "
                                "in PATH; next: start it by hand"));
}

absl::Status StartDaemon(const std::string& data_dir,
                         const std::string& target) {
  const DaemonClient client(target);
  if (client.ListRuns().ok()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::string program, FindDaemonProgram());
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
  std::error_code error;  // Spawn's error says more
  std::filesystem::create_directories(std::filesystem::path(log).parent_path(),
                                      error);
  TANDEM_ASSIGN_OR_RETURN(const pid_t pid, Spawn(std::move(words), log));
  const Deadline deadline = Deadline::After(kPatienceSecs);
  absl::Status answer;
  while (!(answer = client.ListRuns().status()).ok()) {
    int how = 0;
    if (waitpid(pid, &how, WNOHANG) == pid) {
      return MakeError(
          ErrorCode::kNotReady,
          absl::StrCat("expected a daemon that runs, found that it has exited "
                       "with code ",
                       WIFEXITED(how) ? WEXITSTATUS(how) : -1, ": ",
                       LastLine(log), "; its log is ", log));
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
    return MakeError(ErrorCode::kInvalidArgument,
                     "expected an address for --daemon, found an empty "
                     "--daemon_target");
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

#include "slow_lane/daemon/run_processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "slow_lane/runs/process_tree.h"
#include "slow_lane/runs/run_token.h"
#include "slow_lane/runs/worker_launch.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

std::map<std::string, std::string> OwnEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  // Of a daemon that is itself part of a run.
  environment.erase(kRunTokenVariable);
  return environment;
}

std::vector<std::string> Entries(
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

}  // namespace

std::string MakeToken() {
  std::array<char, 16> bytes;
  // Never short for so few, and never fails once the machine is up.
  while (getrandom(bytes.data(), bytes.size(), 0) !=
         static_cast<ssize_t>(bytes.size())) {
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

LaunchPlan MakeLaunchPlan(const LiveRun& run, const RunFolder& folder,
                          const std::string& start_dir,
                          const std::string& address) {
  LaunchPlan plan;
  plan.argv.push_back(run.config.entry_point);
  plan.argv.insert(plan.argv.end(), run.config.arguments.begin(),
                   run.config.arguments.end());
  std::map<std::string, std::string> environment = OwnEnvironment();
  environment["PYTHONUNBUFFERED"] = std::string("1");
  for (const auto& [name, value] : run.config.environment) {
    environment[name] = value;
  }
  environment["TANDEM_RUN_ID"] = run.row.run_id;
  environment["TANDEM_RUN_DIR"] = folder.path();
  environment["TANDEM_DAEMON"] = address;
  environment["TRAINER_WORKER_CONFIG_PATH"] = folder.config_path();
  environment["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(run.row.gpu_slots, ",");
  plan.environment = Entries(environment);
  plan.working_directory = run.config.working_directory.value_or(start_dir);
  plan.token = run.row.token;
  return plan;
}

rlim_t RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);  // what cannot be raised stays as it was
  return before;
}

absl::StatusOr<ProcessIdentity> SpawnProxy(const RunFolder& folder,
                                           const std::string& run_id,
                                           absl::Duration heartbeat,
                                           absl::Duration kill_grace,
                                           rlim_t descriptors) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  const std::string log = folder.proxy_log_path();
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = {
      "tandem-daemon", "proxy", absl::StrCat("--run_id=", run_id),
      absl::StrCat("--heartbeat=", absl::FormatDuration(heartbeat)),
      absl::StrCat("--kill_grace=", absl::FormatDuration(kill_grace))};
  std::vector<std::string> environment = Entries(OwnEnvironment());
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", &files, &attributes,
                  ExecPointers(words).data(), ExecPointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return MakeSystemError("posix_spawn", "a proxy", failed);
  // Before it may launch anything: that takes our word.
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = descriptors;
  prlimit(pid, RLIMIT_NOFILE, &limit, nullptr);
  return IdentityOf(pid);
}

TreeQuery QueryOf(const LiveRun& run) {
  std::optional<ProcessIdentity> worker;
  if (run.row.worker.pid() != 0) worker = FromProto(run.row.worker);
  return QueryOf(run.row.token, worker, run.proxy);
}

std::string EndRunProcesses(const RunFolder& folder, TreeQuery query,
                            double grace_secs) {
  // It may fail, as on a full disk: what lives is ended all the same.
  const absl::Status prevented =
      PreventLaunch(folder, "cancelled before it was started");
  // Launched a moment ago, maybe.
  const absl::StatusOr<std::optional<ProcessIdentity>> worker =
      folder.ReadWorker();
  if (worker.ok() && worker->has_value() && (*worker)->pid != 0) {
    query.roots.push_back(**worker);
  }
  const absl::StatusOr<TreeEnd> end = EndTree(query, grace_secs);
  if (!end.ok()) return std::string(end.status().message());
  if (!end->left.empty()) return end->Describe();
  // One was launched before, or without its folder none ever will be.
  std::error_code error;
  if (prevented.ok() || absl::IsAlreadyExists(prevented) ||
      (worker.ok() && worker->has_value()) ||
      !std::filesystem::exists(folder.path(), error)) {
    return {};
  }
  return absl::StrCat("a worker may still be launched: ", prevented.message());
}

bool EndOrphans(const RunFolder& folder, const ProcessIdentity& worker,
                const TreeQuery& query, double grace_secs) {
  const absl::StatusOr<std::vector<TreeMember>> alive = FindTree(query);
  if (!alive.ok()) return false;
  const auto is_worker = [&worker](const TreeMember& member) {
    return worker.pid == 0 || member.identity == worker;
  };
  if (std::ranges::any_of(*alive, is_worker)) return false;
  return EndRunProcesses(folder, query, grace_secs).empty();
}

double SecondsSinceStart(const ProcessIdentity& process) {
  if (process.boot_id != BootId()) return 0;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9 -
         static_cast<double>(process.start_time) /
             static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace tandem::slow_lane

#include "slow_lane/proxy/remote_run.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "slow_lane/runs/launch_plan.h"
#include "slow_lane/runs/worker_launch.h"

namespace tandem::slow_lane {
namespace {

constexpr int kFetchSecs = 20;
// The Python that has Ray and Tandem.
constexpr char kPythonVariable[] = "TANDEM_RAY_PYTHON";

}  // namespace

std::string DaemonOfRemote() { return EnvironmentVariable("TANDEM_DAEMON"); }

absl::StatusOr<UniqueFd> OpenStopSignal() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);
  UniqueFd stop(signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!stop.valid()) return MakeSystemError("signalfd", "SIGTERM", errno);
  return stop;
}

absl::StatusOr<RunConfig> ReadRunConfig(const RunFolder& folder) {
  std::ifstream file(folder.config_path());
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  return ParseRunConfig(json);
}

absl::Status MakeRemoteFolder(const std::string& run_id,
                              const RunFolder& folder, const DaemonLink& link) {
  if (folder.ReadLaunchPlan().ok()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::string json,
                          link.FetchConfig(run_id, kFetchSecs));
  TANDEM_ASSIGN_OR_RETURN(const RunConfig config, ParseRunConfig(json));
  const absl::Status made = folder.Create();
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  TANDEM_RETURN_IF_ERROR(folder.WriteConfig(json));
  return folder.WriteLaunchPlan(
      MakeLaunchPlan(config, folder,
                     {.run_id = run_id,
                      .daemon = DaemonOfRemote(),
                      .token = EnvironmentVariable(kRemoteTokenVariable),
                      .working_directory = folder.path(),
                      .gpus = std::nullopt}));
}

absl::Status BecomeRayJob(const std::string& run_id,
                          const std::string& public_address,
                          const ProxyLock& lock) {
  lock.KeepOverExec();
  const std::string given = EnvironmentVariable(kPythonVariable);
  const std::string python = given.empty() ? "python3" : given;
  std::vector<std::string> words = {
      python,   "-m",   "tandem.telemetry.ray_job",
      "follow", run_id, public_address};
  execvp(python.c_str(), ExecPointers(words).data());
  return MakeSystemError(absl::StrCat("execvp (", kPythonVariable, ")"), python,
                         errno);
}

}  // namespace tandem::slow_lane

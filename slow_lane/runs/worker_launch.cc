#include "slow_lane/runs/worker_launch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/os/blocked_signals.h"
#include "slow_lane/runs/durable_file.h"
#include "slow_lane/runs/run_token.h"
#include "slow_lane/runs/worker_child.h"

namespace tandem::slow_lane {
namespace {

// Opens a file for the child, above the descriptors that the child sets.
absl::StatusOr<UniqueFd> OpenForChild(const std::string& path, int flags) {
  const UniqueFd file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  UniqueFd high(fcntl(file.get(), F_DUPFD_CLOEXEC, WorkerChild::kFirstFreeFd));
  if (!high.valid()) return MakeSystemError("fcntl", path, errno);
  return high;
}

std::string EntryOf(const std::vector<std::string>& environment,
                    absl::string_view name) {
  const std::string beginning = absl::StrCat(name, "=");
  for (const std::string& entry : environment) {
    if (entry.starts_with(beginning)) return entry.substr(beginning.size());
  }
  return "";
}

// Returns the paths that execvp would try, in order. An empty folder means the
// current folder.
std::vector<std::string> Candidates(
    const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return {program};
  std::string path = EntryOf(environment, "PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> candidates;
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    candidates.push_back(
        absl::StrCat(folder, folder.empty() ? "./" : "/", program));
  }
  return candidates;
}

std::vector<std::string> EnvironmentOf(const LaunchPlan& plan) {
  const std::string ours = absl::StrCat(kRunTokenVariable, "=");
  std::vector<std::string> environment = {ours + plan.token};
  for (const std::string& entry : plan.environment) {
    // A daemon that is itself part of a run has that run's token.
    if (!entry.starts_with(ours)) environment.push_back(entry);
  }
  return environment;
}

absl::Status DispatchedBefore(const RunFolder& folder) {
  return absl::AlreadyExistsError(
      absl::StrCat("worker: expected none dispatched, found ",
                   folder.worker_path(), "; next: adopt it"));
}

absl::Status CheckPlan(const LaunchPlan& plan) {
  if (plan.argv.empty() || plan.argv[0].empty()) {
    return absl::InvalidArgumentError(
        "launch plan: expected a program in argv, found none");
  }
  if (plan.token.empty()) {
    return absl::InvalidArgumentError(
        "launch plan: expected a token, found none");
  }
  return absl::OkStatus();
}

// Converts the report of a child that did not become the worker.
absl::Status StatusOf(const std::string& report, const RunFolder& folder) {
  const auto outcome = static_cast<WorkerChild::Outcome>(report[0]);
  const std::string text = report.substr(1);
  switch (outcome) {
    case WorkerChild::Outcome::kDispatchedBefore:
      return DispatchedBefore(folder);
    case WorkerChild::Outcome::kNotExecuted:
      return absl::FailedPreconditionError(text);
    case WorkerChild::Outcome::kNotDispatched:
      break;
  }
  return absl::UnavailableError(text);
}

WorkerExit FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return {WorkerExit::How::kSignalled, WTERMSIG(status), ""};
  }
  return {WorkerExit::How::kExited, WEXITSTATUS(status), ""};
}

// Returns the kernel's exit status of a pidfd's process, after its parent has
// reaped it. Since Linux 6.15; the headers of Debian 12 lack it.
std::optional<WorkerExit> ExitFromKernel(int pidfd) {
  struct {
    uint64_t mask = 1u << 3;  // PIDFD_INFO_EXIT
    uint64_t cgroup = 0;
    std::array<uint32_t, 11> ids = {};
    int32_t wait_status = 0;
  } info;
  static_assert(sizeof(info) == 64);  // PIDFD_INFO_SIZE_VER0
  const auto request = _IOC(_IOC_READ | _IOC_WRITE, 0xFF, 11, sizeof(info));
  if (ioctl(pidfd, request, &info) != 0 || (info.mask & 1u << 3) == 0) {
    return std::nullopt;
  }
  return FromWaitStatus(info.wait_status);
}

}  // namespace

absl::StatusOr<RunningWorker> LaunchWorker(const RunFolder& folder,
                                           const LaunchPlan& plan) {
  TANDEM_RETURN_IF_ERROR(CheckPlan(plan));
  TANDEM_ASSIGN_OR_RETURN(const auto before, folder.ReadWorker());
  if (before.has_value()) return DispatchedBefore(folder);

  // Prepares all data of the child, which must not allocate between fork and
  // exec.
  std::error_code error;
  // The child has another working directory.
  const RunFolder absolute(
      std::filesystem::absolute(folder.path(), error).string());
  if (error) return MakeSystemError("getcwd", folder.path(), error.value());
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd input,
                          OpenForChild("/dev/null", O_RDONLY));
  TANDEM_ASSIGN_OR_RETURN(
      const UniqueFd output,
      OpenForChild(absolute.stdout_path(), O_WRONLY | O_CREAT | O_APPEND));
  TANDEM_ASSIGN_OR_RETURN(
      const UniqueFd errors,
      OpenForChild(absolute.stderr_path(), O_WRONLY | O_CREAT | O_APPEND));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return MakeSystemError("pipe2", "", errno);
  const UniqueFd report_end(ends[0]);
  UniqueFd low_report(ends[1]);
  UniqueFd child_report(
      fcntl(ends[1], F_DUPFD_CLOEXEC, WorkerChild::kFirstFreeFd));
  low_report.reset();
  if (!child_report.valid()) return MakeSystemError("fcntl", "pipe", errno);

  std::vector<std::string> arguments = plan.argv;
  std::vector<std::string> environment = EnvironmentOf(plan);
  std::vector<std::string> candidates = Candidates(plan.argv[0], environment);
  const std::vector<char*> argv = ExecPointers(arguments);
  const std::vector<char*> envp = ExecPointers(environment);
  const std::vector<char*> programs = ExecPointers(candidates);
  const std::string worker_path = absolute.worker_path();
  const std::string exit_path = absolute.exit_path();
  const WorkerChild child = {
      .input = input.get(),
      .output = output.get(),
      .errors = errors.get(),
      .report = child_report.get(),
      .run_limit = RunToken(plan.token).limit(),
      .folder = absolute.path().c_str(),
      .worker_path = worker_path.c_str(),
      .exit_path = exit_path.c_str(),
      .boot_id = BootId().c_str(),
      .working_directory = plan.working_directory.empty()
                               ? absolute.path().c_str()
                               : plan.working_directory.c_str(),
      .no_program =
          candidates.size() > 1
              ? "entry_point: expected a program in a folder of PATH, found: "
              : "entry_point: expected a program, found: ",
      .programs = programs.data(),
      .argv = argv.data(),
      .envp = envp.data(),
  };

  pid_t pid = -1;
  {
    // Prevents that this process's signal handlers run in the child.
    const BlockedSignals blocked;
    pid = fork();
    if (pid == 0) child.Become();
  }
  if (pid < 0) return MakeSystemError("fork", plan.argv[0], errno);
  child_report.reset();
  absl::StatusOr<ProcessIdentity> identity = IdentityOf(pid);
  std::string report;
  ReadToEnd(report_end.get(), &report);
  if (!report.empty()) {
    waitpid(pid, nullptr, 0);
    return StatusOf(report, folder);
  }
  TANDEM_RETURN_IF_ERROR(identity.status());
  TANDEM_ASSIGN_OR_RETURN(UniqueFd pidfd, OpenProcess(*identity));
  // No report: the child may have been killed before it made the record.
  TANDEM_ASSIGN_OR_RETURN(const auto recorded, folder.ReadWorker());
  if (!recorded.has_value()) {
    waitpid(pid, nullptr, 0);
    return absl::UnavailableError(absl::StrCat(
        "worker: expected process ", pid,
        " to become it, found that it ended before; next: launch it again"));
  }
  return RunningWorker{.identity = *std::move(identity),
                       .pidfd = std::move(pidfd)};
}

absl::Status PreventLaunch(const RunFolder& folder, absl::string_view reason) {
  // Makes the record of a launched child, but without a process.
  const std::string beside =
      absl::StrCat(folder.worker_path(), ".prevented-", getpid());
  TANDEM_RETURN_IF_ERROR(WriteDurably(beside, "0 0 -\n"));
  const int failed =
      link(beside.c_str(), folder.worker_path().c_str()) == 0 ? 0 : errno;
  unlink(beside.c_str());
  if (failed == EEXIST) return DispatchedBefore(folder);
  if (failed != 0) {
    return MakeSystemError("link", folder.worker_path(), failed);
  }
  return folder.WriteExit(
      {WorkerExit::How::kNotStarted, 0, std::string(reason)});
}

absl::StatusOr<AdoptedWorker> AdoptWorker(const RunFolder& folder,
                                          absl::string_view token) {
  AdoptedWorker adopted;
  // Reads the exit first: the process that writes it has finished with the
  // worker.
  TANDEM_ASSIGN_OR_RETURN(adopted.exit, folder.ReadExit());
  TANDEM_ASSIGN_OR_RETURN(const auto recorded, folder.ReadWorker());
  if (recorded.has_value()) adopted.worker.identity = *recorded;
  if (adopted.exit.has_value()) {
    adopted.state = AdoptedWorker::State::kEnded;
    return adopted;
  }
  if (!recorded.has_value()) return adopted;

  adopted.state = AdoptedWorker::State::kEnded;
  if (recorded->pid == 0) return adopted;  // PreventLaunch was killed
  absl::StatusOr<UniqueFd> pidfd = OpenProcess(*recorded);
  if (absl::IsNotFound(pidfd.status())) return adopted;
  TANDEM_RETURN_IF_ERROR(pidfd.status());
  // No token: the worker is not executed yet, or has overwritten it.
  const std::optional<std::string> found = RunTokenOf(recorded->pid);
  if (found.has_value() && *found != token) return adopted;
  adopted.state = AdoptedWorker::State::kRunning;
  adopted.worker.pidfd = *std::move(pidfd);
  return adopted;
}

WorkerExit ExitOf(const siginfo_t& child) {
  return {child.si_code == CLD_EXITED ? WorkerExit::How::kExited
                                      : WorkerExit::How::kSignalled,
          child.si_status, ""};
}

std::optional<WorkerExit> EndOf(const RunningWorker& worker) {
  pollfd polled = {.fd = worker.pidfd.get(), .events = POLLIN, .revents = 0};
  if (poll(&polled, 1, 0) <= 0) return std::nullopt;
  siginfo_t info = {};
  if (waitid(P_PIDFD, static_cast<id_t>(worker.pidfd.get()), &info,
             WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0) {
    return ExitOf(info);
  }
  // Waits until the parent reaps the worker: at once, or never.
  constexpr int kParentsTimeMs = 100;
  polled.events = 0;
  poll(&polled, 1, kParentsTimeMs);
  if (auto exit = ExitFromKernel(worker.pidfd.get())) return exit;
  return WorkerExit{
      WorkerExit::How::kUnknown, 0,
      "it was another process's child, and its parent did not take it away, or "
      "the kernel does not keep how it ended (Linux 6.15 does)"};
}

void Reap(const RunningWorker& worker) {
  siginfo_t info = {};
  waitid(P_PIDFD, static_cast<id_t>(worker.pidfd.get()), &info,
         WEXITED | WNOHANG);
}

absl::Status BecomeSubreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return absl::OkStatus();
  return MakeSystemError("prctl(PR_SET_CHILD_SUBREAPER)", "this process",
                         errno);
}

void ReapOrphans(pid_t worker) {
  for (;;) {
    siginfo_t info = {};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0 || info.si_pid == worker) {
      return;
    }
    waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
}

}  // namespace tandem::slow_lane

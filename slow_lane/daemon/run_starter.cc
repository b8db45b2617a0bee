#include "slow_lane/daemon/run_starter.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/error.h"
#include "slow_lane/runs/launch_plan.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/runs/worker_launch.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);

// Raises this process's limit of open descriptors to the maximum; each run
// takes two. Returns the earlier limit.
rlim_t RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);  // on failure the limit stays
  return before;
}

// Returns the processors that a process may use; pid 0: this process. Empty: it
// has ended.
std::vector<int> AffinityOf(pid_t pid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(pid, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Starts this program as the run's proxy, in a session of its own, with its
// output in the folder's proxy.log. `descriptors` and `cpus` are the proxy's
// and the worker's: some programs fail with a higher limit of descriptors; no
// `cpus`: the daemon's.
absl::StatusOr<ProcessIdentity> SpawnProxy(const RunOptions& options,
                                           const std::string& run_id,
                                           rlim_t descriptors,
                                           const std::vector<int>& cpus) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  const std::string log =
      RunFolder::At(options.data_dir, run_id).proxy_log_path();
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
      "tandem-daemon",
      "proxy",
      absl::StrCat("--run_id=", run_id),
      absl::StrCat("--heartbeat=", absl::FormatDuration(options.heartbeat)),
      absl::StrCat("--kill_grace=", absl::FormatDuration(options.kill_grace)),
      absl::StrCat("--public_address=", options.public_address)};
  std::vector<std::string> environment = OwnEnvironment();
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, "/proc/self/exe", &files, &attributes,
                  ExecPointers(words).data(), ExecPointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return MakeSystemError("posix_spawn", "a proxy", failed);
  // Before the proxy can launch a worker, which needs our welcome.
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = descriptors;
  prlimit(pid, RLIMIT_NOFILE, &limit, nullptr);
  if (!cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    // If it has ended already, so does the run's start.
    sched_setaffinity(pid, sizeof(set), &set);
  }
  return IdentityOf(pid);
}

}  // namespace

RunStarter::RunStarter(const RunOptions& options, EventLoop* loop,
                       LiveRuns* runs)
    : options_(options),
      loop_(loop),
      runs_(runs),
      descriptors_(RaiseDescriptorLimit()),
      gpus_(options_.gpu_slots),
      cpus_(AffinityOf(0)) {}

absl::Status RunStarter::WatchChildren() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  children_ = UniqueFd(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_.valid()) return MakeSystemError("signalfd", "SIGCHLD", errno);
  loop_->Post(
      [this] { loop_->Watch(children_.get(), [this] { ReapChildren(); }); });
  return absl::OkStatus();
}

void RunStarter::TakeUp(LiveRun* run) {
  gpus_.Mark(run->row.gpu_slots);
  if (!run->dispatched) return Enqueue(run);
  holders_.insert(run);
}

void RunStarter::Enqueue(LiveRun* run) {
  holders_.erase(run);
  queue_.Add(run, {.room = ShareOf(run->config) != MachineShare(),
                   .gpus = run->config.gpus_requested > 0 &&
                           run->row.gpu_slots.empty()});
}

void RunStarter::Dispatch() {
  if (address_.empty()) return;
  MachineRoom room(options_.machine.value_or(MachineShare()));
  for (const LiveRun* const run : holders_) room.Take(ShareOf(run->config));
  queue_.Start([&](LiveRun* run) { return Start(run, &room); });
}

RunQueue::Wait RunStarter::Start(LiveRun* run, MachineRoom* room) {
  const MachineShare share = ShareOf(run->config);
  if (!room->Has(share)) return RunQueue::Wait::kRoom;
  if (!TakeGpus(run)) return RunQueue::Wait::kGpus;
  if (const absl::Status ready = Prepare(*run); !ready.ok()) {
    run->waiting_for = std::string(ready.message());
    // The next tick tries again. No other run takes the place of a run that
    // only waits for its last proxy.
    if (absl::IsUnavailable(ready)) room->Take(share);
    Enqueue(run);  // it keeps its GPUs, and waits for none
    return RunQueue::Wait::kOther;
  }
  run->waiting_for = run->config.on_ray ? "its job of Ray" : "";
  run->dispatched = true;
  holders_.insert(run);
  room->Take(share);
  run->last_beat_ns = MonotonicNanos();  // the timeout begins
  StartProxy(run);
  return RunQueue::Wait::kNothing;
}

void RunStarter::NameWaits() {
  const MachineRoom machine(options_.machine.value_or(MachineShare()));
  size_t before = 0;
  bool gpus_are_awaited = false;
  queue_.ForEach([&](LiveRun* run, RunQueue::Wait wait) {
    if (wait == RunQueue::Wait::kRoom) {
      run->waiting_for = machine.Name(machine.Limited(ShareOf(run->config)));
      if (before > 0) {
        absl::StrAppend(&run->waiting_for, "; ", before,
                        before == 1 ? " run" : " runs", " before it");
      }
    } else if (wait == RunQueue::Wait::kGpus) {
      const uint32_t gpus = run->config.gpus_requested;
      run->waiting_for = absl::StrCat(gpus, gpus == 1 ? " GPU" : " GPUs",
                                      std::exchange(gpus_are_awaited, true)
                                          ? ", behind another run that does"
                                          : "");
    } else {
      return;
    }
    ++before;
  });
}

MachineShare RunStarter::ShareOf(const RunConfig& config) const {
  if (!options_.machine.has_value() || config.on_ray) return {};
  return {config.cpus, config.reserve_memory ? config.memory_mb : 0};
}

absl::Status RunStarter::CheckFits(const RunConfig& config) const {
  if (config.gpus_mandatory &&
      config.gpus_requested > static_cast<uint32_t>(gpus_.total())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "resources.gpus.requested: expected at most ", gpus_.total(),
        ", all that this daemon has (--gpu_slots), found ",
        config.gpus_requested, " that are mandatory"));
  }
  const std::string more = AsksForMore(config);
  if (!options_.strict_resources || more.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "resources: expected no more than this daemon has, found a run that ",
      more, " (--strict_resources refuses it)"));
}

std::string RunStarter::AsksForMore(const RunConfig& config) const {
  const MachineRoom room(options_.machine.value_or(MachineShare()));
  const MachineShare share = ShareOf(config);
  return room.Limited(share) == share
             ? ""
             : absl::StrCat("asks for ", room.Name(share), ": it runs alone");
}

void RunStarter::Release(LiveRun* run) {
  gpus_.Release(run->row.gpu_slots);
  cpus_.Release(run->cpus);
  run->cpus.clear();
}

void RunStarter::Forget(LiveRun* run) {
  Release(run);
  holders_.erase(run);
  queue_.Remove(run);
}

bool RunStarter::TakeGpus(LiveRun* run) {
  const RunConfig& config = run->config;
  if (!run->row.gpu_slots.empty() || config.gpus_requested == 0) return true;
  std::optional<std::vector<int32_t>> slots =
      gpus_.Take(config.gpus_requested, config.gpus_mandatory);
  if (slots.has_value()) run->row.gpu_slots = *std::move(slots);
  return slots.has_value();
}

absl::Status RunStarter::Prepare(const LiveRun& run) {
  const RunFolder folder = RunFolder::At(options_.data_dir, run.row.run_id);
  if (const absl::Status made = folder.Create(); absl::IsAlreadyExists(made)) {
    if (run.row.attempt > 1) {
      TANDEM_ASSIGN_OR_RETURN(const bool has_proxy, folder.HasProxy());
      if (has_proxy) {
        return absl::UnavailableError("the end of its last attempt's proxy");
      }
      TANDEM_RETURN_IF_ERROR(folder.SetRecordsAside(run.row.attempt - 1));
    }
    // A folder made for this run, by this daemon or an earlier one, has no
    // worker yet.
    const absl::StatusOr<std::optional<ProcessIdentity>> worker =
        folder.ReadWorker();
    if (!worker.ok() || worker->has_value()) {
      return absl::AlreadyExistsError(
          absl::StrCat("expected no other run's folder of that name, found ",
                       folder.worker_path(), "; next: move the folder away"));
    }
  } else if (!made.ok()) {
    return made;
  }
  TANDEM_RETURN_IF_ERROR(folder.WriteConfig(run.row.config_json));
  return folder.WriteLaunchPlan(
      MakeLaunchPlan(run.config, folder,
                     {.run_id = run.row.run_id,
                      .daemon = address_,
                      .token = run.row.token,
                      .working_directory = options_.start_dir,
                      .gpus = absl::StrJoin(run.row.gpu_slots, ","),
                      .attempt = run.row.attempt}));
}

void RunStarter::StartProxy(LiveRun* run) {
  if (run->process.valid() || MonotonicNanos() < run->next_start_ns) return;
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  // A proxy that an earlier daemon started lives; it will connect.
  if (const absl::StatusOr<bool> lives = folder.HasProxy();
      lives.ok() && *lives) {
    return;
  }
  // The worker is known, but its record was removed: no proxy can adopt it. (On
  // Ray it is unknown here.)
  if (const absl::StatusOr<std::optional<ProcessIdentity>> worker =
          folder.ReadWorker();
      run->row.worker.pid() != 0 && worker.ok() && !worker->has_value()) {
    run->vain_starts = kVainStarts;
    return;
  }
  run->backoff = std::clamp(run->backoff * 2, kFirstBackoff, kLongestBackoff);
  run->next_start_ns =
      MonotonicNanos() + absl::ToInt64Nanoseconds(run->backoff);
  ++run->row.proxy_starts;
  if (run->row.attempt_started_ns == 0) {
    run->row.attempt_started_ns = UnixNanos();
  }
  // Saves before the start: the table knows each run that may be dispatched.
  runs_->Save(*run, [this, run_id = run->row.run_id](const absl::Status& s) {
    if (s.ok()) Spawn(run_id);
  });
}

void RunStarter::Spawn(const std::string& run_id) {
  LiveRun* const run = runs_->Find(run_id);
  if (run == nullptr || run->process.valid() || !run->dispatched ||
      IsFinal(run->row.status)) {
    return;
  }
  if (run->config.enforce_resources && run->cpus.empty()) {
    run->cpus = cpus_.Take(run->config.cpus);
  }
  const absl::StatusOr<ProcessIdentity> proxy =
      SpawnProxy(options_, run_id, descriptors_, run->cpus);
  if (!proxy.ok()) {
    run->waiting_for = std::string(proxy.status().message());
    return;  // a later tick tries again
  }
  if (!run->config.on_ray) run->waiting_for.clear();
  WatchProxy(run, *proxy);
}

void RunStarter::WatchProxy(LiveRun* run, const ProcessIdentity& proxy) {
  absl::StatusOr<UniqueFd> process = OpenProcess(proxy);
  if (!process.ok()) return;  // ended: the next tick starts another one
  run->process = *std::move(process);
  run->proxy = proxy;
  if (run->config.enforce_resources && run->cpus.empty()) {
    run->cpus = AffinityOf(proxy.pid);  // an earlier daemon has started it
    cpus_.Mark(run->cpus);
  }
  loop_->Watch(run->process.get(),
               [this, run_id = run->row.run_id] { ProxyEnded(run_id); });
}

void RunStarter::UnwatchProxy(LiveRun* run) {
  if (run->process.valid()) loop_->Unwatch(run->process.get());
}

void RunStarter::ProxyEnded(const std::string& run_id) {
  LiveRun* const run = runs_->Find(run_id);
  if (run == nullptr) return;
  loop_->Unwatch(run->process.get());
  run->process.reset();
  if (IsFinal(run->row.status)) return;
  if (!run->dispatched) return Dispatch();  // its next attempt waits for this
  const absl::Duration wait =
      absl::Nanoseconds(run->next_start_ns - MonotonicNanos());
  loop_->After(std::max(wait, absl::ZeroDuration()), [this, run_id] {
    LiveRun* const still = runs_->Find(run_id);
    if (still != nullptr && still->dispatched && !IsFinal(still->row.status)) {
      StartProxy(still);
    }
  });
}

void RunStarter::ReapChildren() {
  signalfd_siginfo info;
  while (read(children_.get(), &info, sizeof(info)) > 0) {
  }
  // Proxies, and the orphaned children of dead proxies.
  siginfo_t child = {};
  while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         child.si_pid != 0) {
    // The child is a zombie, so its pid is not reused.
    if (const absl::StatusOr<ProcessIdentity> ended = IdentityOf(child.si_pid);
        ended.ok()) {
      RecordExit(*ended, ExitOf(child));
    }
    waitid(P_PID, static_cast<id_t>(child.si_pid), &child, WEXITED);
    child = {};
  }
}

void RunStarter::RecordExit(const ProcessIdentity& ended,
                            const WorkerExit& exit) {
  for (LiveRun* const run : holders_) {
    if (!run->dispatched) continue;
    const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
    // Its proxy may have died before it could report the worker.
    const std::optional<ProcessIdentity> worker =
        run->row.worker.pid() != 0 ? FromProto(run->row.worker)
                                   : folder.ReadWorker().value_or(std::nullopt);
    if (worker == ended) folder.WriteExit(exit).IgnoreError();
    if (run->proxy == ended && exit.how == WorkerExit::How::kExited &&
        exit.number != 0) {
      ++run->vain_starts;
    }
  }
}

}  // namespace tandem::slow_lane

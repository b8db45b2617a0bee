#include "slow_lane/daemon/run_starter.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "slow_lane/daemon/run_processes.h"
#include "slow_lane/runs/run_state.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);

}  // namespace

RunStarter::RunStarter(const RunOptions& options, EventLoop* loop,
                       LiveRuns* runs)
    : options_(options),
      loop_(loop),
      runs_(runs),
      descriptors_(RaiseDescriptorLimit()),
      gpus_(options_.gpu_slots) {}

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

void RunStarter::Dispatch() {
  if (address_.empty()) return;
  bool gpus_are_awaited = false;
  for (LiveRun* const run : runs_->InOrder()) {
    if (run->dispatched || IsFinal(run->row.status)) continue;
    if (!TakeGpus(run, gpus_are_awaited)) {
      gpus_are_awaited = true;
      continue;
    }
    if (const absl::Status ready = Prepare(*run); !ready.ok()) {
      run->waiting_for = std::string(ready.message());
      continue;  // tried again at the next tick
    }
    run->waiting_for.clear();
    run->dispatched = true;
    run->last_beat_ns = MonotonicNanos();  // the timeout begins
    StartProxy(run);
  }
}

bool RunStarter::TakeGpus(LiveRun* run, bool gpus_are_awaited) {
  if (!run->row.gpu_slots.empty() || run->config.gpus_requested == 0) {
    return true;
  }
  std::optional<std::vector<int32_t>> slots;
  if (!gpus_are_awaited) {
    slots = gpus_.Take(run->config.gpus_requested, run->config.gpus_mandatory);
  }
  if (slots.has_value()) {
    run->row.gpu_slots = *std::move(slots);
    return true;
  }
  run->waiting_for =
      absl::StrCat(run->config.gpus_requested, " GPUs",
                   gpus_are_awaited ? ", behind another run that does" : "");
  return false;
}

absl::Status RunStarter::Prepare(const LiveRun& run) {
  const RunFolder folder = RunFolder::At(options_.data_dir, run.row.run_id);
  if (const absl::Status made = folder.Create(); absl::IsAlreadyExists(made)) {
    // Made by this daemon or an earlier one that was killed? Then it has no
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
  if (const absl::Status written = folder.WriteConfig(run.row.config_json);
      !written.ok()) {
    return written;
  }
  return folder.WriteLaunchPlan(
      MakeLaunchPlan(run, folder, options_.start_dir, address_));
}

void RunStarter::StartProxy(LiveRun* run) {
  if (run->process.valid() || MonotonicNanos() < run->next_start_ns) return;
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  // One that an earlier daemon started lives: it will say hello.
  if (const absl::StatusOr<bool> lives = folder.HasProxy();
      lives.ok() && *lives) {
    return;
  }
  // The worker is known, and its record is gone: no proxy can adopt it.
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
  // Bookkeeping first: a run that may have been dispatched is known as one.
  runs_->Save(*run, [this, run_id = run->row.run_id](const absl::Status& s) {
    if (s.ok()) loop_->Post([this, run_id] { Spawn(run_id); });
  });
}

void RunStarter::Spawn(const std::string& run_id) {
  LiveRun* const run = runs_->Find(run_id);
  if (run == nullptr || run->process.valid() || IsFinal(run->row.status)) {
    return;
  }
  const absl::StatusOr<ProcessIdentity> proxy =
      SpawnProxy(RunFolder::At(options_.data_dir, run_id), run_id,
                 options_.heartbeat, options_.kill_grace, descriptors_);
  if (!proxy.ok()) {
    run->waiting_for = std::string(proxy.status().message());
    return;  // tried again at a later tick
  }
  run->waiting_for.clear();
  WatchProxy(run, *proxy);
}

void RunStarter::WatchProxy(LiveRun* run, const ProcessIdentity& proxy) {
  absl::StatusOr<UniqueFd> process = OpenProcess(proxy);
  if (!process.ok()) return;  // gone: the next tick starts another one
  run->process = *std::move(process);
  run->proxy = proxy;
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
  const absl::Duration wait =
      absl::Nanoseconds(run->next_start_ns - MonotonicNanos());
  loop_->After(std::max(wait, absl::ZeroDuration()), [this, run_id] {
    LiveRun* const still = runs_->Find(run_id);
    if (still != nullptr && !IsFinal(still->row.status)) StartProxy(still);
  });
}

void RunStarter::ReapChildren() {
  signalfd_siginfo info;
  while (read(children_.get(), &info, sizeof(info)) > 0) {
  }
  // Proxies, and the children that they left behind when they died.
  siginfo_t child = {};
  while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         child.si_pid != 0) {
    // Still a zombie, which has its number to itself.
    if (const absl::StatusOr<ProcessIdentity> ended = IdentityOf(child.si_pid);
        ended.ok()) {
      RecordExit(*ended, {.how = child.si_code == CLD_EXITED
                                     ? WorkerExit::How::kExited
                                     : WorkerExit::How::kSignalled,
                          .number = child.si_status,
                          .reason = ""});
    }
    waitid(P_PID, static_cast<id_t>(child.si_pid), &child, WEXITED);
    child = {};
  }
}

void RunStarter::RecordExit(const ProcessIdentity& ended,
                            const WorkerExit& exit) {
  for (auto& [run_id, run] : runs_->all()) {
    if (!run.dispatched || IsFinal(run.row.status)) continue;
    const RunFolder folder = RunFolder::At(options_.data_dir, run_id);
    // Its proxy may have died before it could report the worker.
    const std::optional<ProcessIdentity> worker =
        run.row.worker.pid() != 0 ? FromProto(run.row.worker)
                                  : folder.ReadWorker().value_or(std::nullopt);
    if (worker == ended) folder.WriteExit(exit).IgnoreError();
    if (run.proxy == ended && exit.how == WorkerExit::How::kExited &&
        exit.number != 0) {
      ++run.vain_starts;
    }
  }
}

}  // namespace tandem::slow_lane

// The thread's own half of RunSupervisor: processes, states, timers.
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "slow_lane/daemon/run_processes.h"
#include "slow_lane/daemon/run_supervisor.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_id.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/runs/worker_launch.h"
#include "transport/base/clock.h"

namespace tandem::slow_lane {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);
// A run that has ended is kept so long at least: who looks each second, as
// tandemctl watch does, sees how.
constexpr absl::Duration kShownWhenEnded = absl::Seconds(5);

}  // namespace

LiveRun* RunSupervisor::Lookup(const std::string& run_id) {
  const auto found = runs_.find(run_id);
  return found == runs_.end() ? nullptr : &found->second;
}

absl::StatusOr<LiveRun*> RunSupervisor::FindOrError(const std::string& run_id) {
  LiveRun* const run = Lookup(run_id);
  if (run == nullptr) return NoSuchRun(run_id);
  return run;
}

void RunSupervisor::TakeUp(std::vector<RunRow> rows) {
  const int64_t now_ns = MonotonicNanos();
  for (RunRow& row : rows) {
    LiveRun& run = runs_[row.run_id];
    run.row = std::move(row);
    run.record = ToRecord(run.row);
    run.order = ++last_order_;
    absl::StatusOr<RunConfig> config = ParseRunConfig(run.row.config_json);
    if (config.ok()) run.config = *std::move(config);
    if (IsFinal(run.row.status)) {
      run.ended_ns = now_ns;
      RemoveUnwantedLogs(run);  // should the daemon have died before it could
      continue;
    }
    if (!config.ok()) {  // an earlier version's, which this one refuses
      End(&run, gymgui::trainer::RUN_STATUS_FAULT,
          absl::StrCat("its configuration is not valid any more: ",
                       config.status().message()));
      continue;
    }
    run.last_beat_ns = now_ns;
    run.dispatched = run.row.proxy_starts > 0;
    gpus_.Mark(run.row.gpu_slots);
  }
}

void RunSupervisor::Dispatch() {
  if (address_.empty()) return;  // Begin does it
  std::map<uint64_t, LiveRun*> waiting;
  for (auto& [run_id, run] : runs_) {
    if (!run.dispatched && !IsFinal(run.row.status)) waiting[run.order] = &run;
  }
  bool gpus_are_awaited = false;
  for (const auto& [order, run] : waiting) {
    if (run->row.gpu_slots.empty() && run->config.gpus_requested > 0) {
      // None overtakes another one that asks for GPUs.
      std::optional<std::vector<int32_t>> slots;
      if (!gpus_are_awaited) {
        slots =
            gpus_.Take(run->config.gpus_requested, run->config.gpus_mandatory);
      }
      if (!slots.has_value()) {
        run->waiting_for = absl::StrCat(
            run->config.gpus_requested, " GPUs",
            gpus_are_awaited ? ", behind another run that does" : "");
        gpus_are_awaited = true;
        continue;
      }
      run->row.gpu_slots = *std::move(slots);
    }
    if (const absl::Status ready = Prepare(run); !ready.ok()) {
      run->waiting_for = std::string(ready.message());
      continue;  // tried again at the next tick
    }
    run->waiting_for.clear();
    run->dispatched = true;
    run->last_beat_ns = MonotonicNanos();  // it has all the time from now on
    StartProxy(run);
  }
}

absl::Status RunSupervisor::Prepare(LiveRun* run) {
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  if (const absl::Status made = folder.Create(); absl::IsAlreadyExists(made)) {
    // Made by us, before the daemon was killed? Then it has no worker yet.
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
  if (const absl::Status written = folder.WriteConfig(run->row.config_json);
      !written.ok()) {
    return written;
  }
  return folder.WriteLaunchPlan(
      MakeLaunchPlan(*run, folder, options_.start_dir, address_));
}

void RunSupervisor::StartProxy(LiveRun* run) {
  if (run->process.valid() || MonotonicNanos() < run->next_start_ns) return;
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  // One that an earlier daemon started lives: it will say hello.
  if (const absl::StatusOr<bool> lives = folder.HasProxy();
      lives.ok() && *lives) {
    return;
  }
  // Who it was is known: nobody starts a second one where its record is gone.
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
  store_->Post(
      [row = run->row](Database& database) { return SaveRun(database, row); },
      [this, run_id = run->row.run_id](const absl::Status& saved) {
        loop_.Post([this, run_id, saved] {
          LiveRun* const still = Lookup(run_id);
          if (still == nullptr || !saved.ok() || still->process.valid() ||
              IsFinal(still->row.status)) {
            return;
          }
          const absl::StatusOr<ProcessIdentity> proxy =
              SpawnProxy(RunFolder::At(options_.data_dir, run_id), run_id,
                         options_.heartbeat, options_.kill_grace, descriptors_);
          if (!proxy.ok()) {
            still->waiting_for = std::string(proxy.status().message());
            return;  // tried again at a later tick
          }
          still->waiting_for.clear();
          WatchProxy(still, *proxy);
        });
      });
}

void RunSupervisor::WatchProxy(LiveRun* run, const ProcessIdentity& proxy) {
  absl::StatusOr<UniqueFd> process = OpenProcess(proxy);
  if (!process.ok()) return;  // gone: the next tick starts another one
  run->process = *std::move(process);
  run->proxy = proxy;
  loop_.Watch(run->process.get(),
              [this, run_id = run->row.run_id] { ProxyGone(run_id); });
}

void RunSupervisor::ProxyGone(const std::string& run_id) {
  LiveRun* const run = Lookup(run_id);
  if (run == nullptr) return;
  loop_.Unwatch(run->process.get());
  run->process.reset();
  if (IsFinal(run->row.status)) return;
  const absl::Duration wait =
      absl::Nanoseconds(run->next_start_ns - MonotonicNanos());
  loop_.After(std::max(wait, absl::ZeroDuration()), [this, run_id] {
    LiveRun* const still = Lookup(run_id);
    if (still != nullptr && !IsFinal(still->row.status)) StartProxy(still);
  });
}

void RunSupervisor::ReapChildren() {
  signalfd_siginfo info;
  while (read(children_.get(), &info, sizeof(info)) > 0) {
  }
  // Proxies, and whatever they left behind when they died.
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

void RunSupervisor::RecordExit(const ProcessIdentity& ended,
                               const WorkerExit& exit) {
  for (auto& [run_id, run] : runs_) {
    if (!run.dispatched || IsFinal(run.row.status)) continue;
    const RunFolder folder = RunFolder::At(options_.data_dir, run_id);
    std::optional<ProcessIdentity> worker;
    if (run.row.worker.pid() != 0) {
      worker = FromProto(run.row.worker);
    } else {
      // Its proxy died before it could tell.
      worker = folder.ReadWorker().value_or(std::nullopt);
    }
    if (worker == ended) folder.WriteExit(exit).IgnoreError();
    if (run.proxy == ended && exit.how == WorkerExit::How::kExited &&
        exit.number != 0) {
      ++run.vain_starts;
    }
  }
}

void RunSupervisor::MoveTo(LiveRun* run, RunState state,
                           std::optional<std::string> reason,
                           absl::AnyInvocable<void()> durable) {
  if (const absl::Status legal = CheckTransition(run->row.status, state);
      !legal.ok()) {
    return;  // callers have looked; a late message of a proxy may be late
  }
  run->row.status = state;
  run->row.failure_reason = std::move(reason);
  run->row.updated_at_ns = UnixNanos();
  auto row = std::make_shared<RunRow>(run->row);
  store_->Post(
      [row](Database& database) { return UpdateRun(database, row.get()); },
      [this, row,
       durable = std::move(durable)](const absl::Status& status) mutable {
        if (!status.ok())
          return;  // closing: the next daemon finds it as it was
        loop_.Post([this, row, durable = std::move(durable)]() mutable {
          if (LiveRun* const still = Lookup(row->run_id); still != nullptr) {
            still->record = ToRecord(*row);
          }
          hub_->Updated(row->update_seq);
          durable();
        });
      });
}

void RunSupervisor::Save(LiveRun* run, Done saved) {
  store_->Post(
      [row = run->row](Database& database) { return SaveRun(database, row); },
      std::move(saved));
}

void RunSupervisor::WorkOn(LiveRun* run,
                           absl::AnyInvocable<EventLoop::Task()> work) {
  run->busy = true;
  run->helper = std::thread(
      [this, run_id = run->row.run_id, work = std::move(work)]() mutable {
        loop_.Post([this, run_id, then = work()]() mutable {
          WorkDone(run_id, std::move(then));
        });
      });
}

void RunSupervisor::WorkDone(const std::string& run_id, EventLoop::Task then) {
  LiveRun* const run = Lookup(run_id);  // not deleted while it is busy
  run->helper.join();
  run->busy = false;
  then();
  while (!run->busy && !run->when_free.empty()) {
    EventLoop::Task next = std::move(run->when_free.front());
    run->when_free.pop_front();
    next();
  }
}

void RunSupervisor::WhenFree(LiveRun* run, EventLoop::Task task) {
  if (run->busy) return run->when_free.push_back(std::move(task));
  task();
}

void RunSupervisor::NoteRows(LiveRun* run, const Numbers& last,
                             uint64_t printed_steps) {
  run->printed_steps = std::max(run->printed_steps, printed_steps);
  for (const Stream stream : kAllStreams) {
    run->last[stream] = std::max(run->last[stream], last[stream]);
  }
  if (run->row.status == gymgui::trainer::RUN_STATUS_RDY &&
      run->last != Numbers()) {
    MoveTo(run, gymgui::trainer::RUN_STATUS_EXEC, std::nullopt);
  }
  CheckLimits(run);
}

void RunSupervisor::Tick() {
  const int64_t now_ns = MonotonicNanos();
  for (auto& [run_id, run] : runs_) {
    if (IsFinal(run.row.status)) continue;
    run.unreachable =
        run.dispatched &&
        now_ns - run.last_beat_ns > absl::ToInt64Nanoseconds(options_.timeout);
    CountRate(&run, now_ns);
    CheckLimits(&run);
    if (run.dispatched) StartProxy(&run);
    EndUnheard(&run);
  }
  Dispatch();
  ForgetOld();
  loop_.After(kTick, [this] { Tick(); });
}

void RunSupervisor::ForgetOld() {
  if (!options_.keep_runs.has_value()) return;
  const int64_t seen_by_all_ns =
      MonotonicNanos() - absl::ToInt64Nanoseconds(kShownWhenEnded);
  std::map<uint64_t, std::string> ended;
  for (const auto& [run_id, run] : runs_) {
    if (run.ended_ns != 0 && run.ended_ns <= seen_by_all_ns && !run.busy) {
      ended[run.order] = run_id;
    }
  }
  while (ended.size() > *options_.keep_runs) {
    Delete(ended.begin()->second, [](const absl::Status&) {});
    ended.erase(ended.begin());
  }
}

}  // namespace tandem::slow_lane

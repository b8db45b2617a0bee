#include "slow_lane/daemon/run_supervisor.h"

#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "slow_lane/daemon/run_processes.h"
#include "slow_lane/runs/process_tree.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_id.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/runs/worker_launch.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::RegisterWorkerRequest;
using gymgui::trainer::RegisterWorkerResponse;
using gymgui::trainer::RunRecord;

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);
// Of a cancelled run: from the death of its last process until CancelRun is
// answered although its last events are not in the table yet.
constexpr absl::Duration kDrainLimit = absl::Seconds(10);
// Beyond the grace: what SIGKILL and the scans may take.
constexpr double kKillSecs = 20;

int64_t UnixNanos() { return static_cast<int64_t>(UnixMillis()) * 1'000'000; }

absl::Status NoSuchRun(const std::string& run_id) {
  return absl::NotFoundError(absl::StrCat(
      "expected a run that was submitted, found none with run_id '", run_id,
      "'; ListRuns has those that there are"));
}

}  // namespace

RunSupervisor::RunSupervisor(const Options& options, EventStore* store,
                             WatchHub* hub)
    : options_(options),
      store_(store),
      hub_(hub),
      gpus_(options.gpu_slots),
      loop_("runs") {}

RunSupervisor::~RunSupervisor() { Stop(); }

absl::StatusOr<std::unique_ptr<RunSupervisor>> RunSupervisor::Start(
    const Options& options, EventStore* store, WatchHub* hub) {
  auto supervisor =
      std::unique_ptr<RunSupervisor>(new RunSupervisor(options, store, hub));
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  supervisor->children_ =
      UniqueFd(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!supervisor->children_.valid()) {
    return MakeSystemError("signalfd", "SIGCHLD", errno);
  }
  // On the store's thread, before anything else is written.
  auto rows = std::make_shared<std::vector<RunRow>>();
  std::mutex mutex;
  std::condition_variable loaded;
  std::optional<absl::Status> result;
  store->Post(
      [rows](Database& database) {
        absl::StatusOr<std::vector<RunRow>> read = LoadRuns(database);
        if (read.ok()) *rows = *std::move(read);
        return read.status();
      },
      [&](const absl::Status& status) {
        const std::lock_guard lock(mutex);
        result = status;
        loaded.notify_one();
      });
  {
    std::unique_lock lock(mutex);
    loaded.wait(lock, [&] { return result.has_value(); });
  }
  if (!result->ok()) return *result;
  supervisor->loop_.Post([self = supervisor.get(), rows] {
    self->loop_.Watch(self->children_.get(), [self] { self->ReapChildren(); });
    self->TakeUp(std::move(*rows));
  });
  return supervisor;
}

void RunSupervisor::Begin(const std::string& address) {
  loop_.Post([this, address] {
    address_ = address;
    for (auto& [run_id, run] : runs_) {
      if (run.row.cancel_requested) StartEnding(&run, "cancelled");
    }
    Tick();
  });
}

void RunSupervisor::AnswerAll() {
  loop_.Post([this] {
    for (auto& [run_id, run] : runs_) {
      AnswerCancel(&run, absl::UnavailableError(
                             "the daemon is stopping; the run is being ended, "
                             "and the next daemon goes on with that"));
    }
  });
}

size_t RunSupervisor::Stop() {
  loop_.Stop();
  // The thread is gone: what it owned may be touched.
  for (auto& [run_id, run] : runs_) {
    if (run.ender.joinable()) run.ender.join();
  }
  return static_cast<size_t>(
      std::count_if(runs_.begin(), runs_.end(), [](const auto& entry) {
        return !IsFinal(entry.second.row.status);
      }));
}

// What clients ask for.

void RunSupervisor::Submit(std::string run_id, RunConfig config,
                           Answer<Submitted> answer) {
  if (run_id.empty()) {
    run_id = MakeRunId();
  } else if (const absl::Status valid = CheckRunId(run_id); !valid.ok()) {
    return answer(valid);
  }
  if (config.gpus_mandatory &&
      config.gpus_requested > static_cast<uint32_t>(gpus_.total())) {
    return answer(absl::InvalidArgumentError(absl::StrCat(
        "resources.gpus.requested: expected at most ", gpus_.total(),
        ", all that this daemon has (--gpu_slots), found ",
        config.gpus_requested, " that are mandatory")));
  }
  RunRow row;
  row.run_id = std::move(run_id);
  row.run_name = config.run_name;
  row.config_json = config.canonical_json;
  row.digest = config.digest;
  row.token = MakeToken();
  row.created_at_ns = row.updated_at_ns = UnixNanos();
  loop_.Post([this, row = std::move(row), config = std::move(config),
              answer = std::move(answer)]() mutable {
    Insert(std::move(row), config, std::move(answer));
  });
}

void RunSupervisor::Insert(RunRow row, const RunConfig& config,
                           Answer<Submitted> answer) {
  auto shared = std::make_shared<RunRow>(std::move(row));
  auto inserted = [this, shared, config, answer = std::move(answer)](
                      const absl::Status& status) mutable {
    loop_.Post([this, shared, config = std::move(config), status,
                answer = std::move(answer)]() mutable {
      if (absl::IsAlreadyExists(status)) {
        // Submitted before, maybe by a client that did not get the answer.
        const LiveRun* const known = Lookup(shared->run_id);
        if (known != nullptr && known->row.digest == shared->digest) {
          return answer(Submitted{shared->run_id, shared->digest});
        }
        return answer(absl::AlreadyExistsError(absl::StrCat(
            "expected a run_id that is free, found a run '", shared->run_id,
            "' with another configuration; submit without run_id to get a "
            "new one")));
      }
      if (!status.ok()) return answer(status);
      LiveRun& run = runs_[shared->run_id];
      run.row = *shared;
      run.order = ++last_order_;
      run.config = std::move(config);
      hub_->Updated(run.row.update_seq);
      answer(Submitted{shared->run_id, shared->digest});
      Dispatch();
    });
  };
  store_->Post(
      [shared](Database& database) { return InsertRun(database, shared.get()); },
      std::move(inserted));
}

void RunSupervisor::Cancel(const std::string& run_id, Done done) {
  loop_.Post([this, run_id, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    LiveRun* const run = *found;
    if (IsFinal(run->row.status)) return done(absl::OkStatus());
    run->cancel_waiters.push_back(std::move(done));
    run->row.cancel_requested = true;
    Save(run);
    StartEnding(run, "cancelled");
  });
}

void RunSupervisor::Pause(const std::string& run_id, Done done) {
  Signal(run_id, gymgui::trainer::RUN_STATUS_EXEC,
         gymgui::trainer::RUN_STATUS_PAUSE, SIGSTOP, std::move(done));
}

void RunSupervisor::Resume(const std::string& run_id, Done done) {
  Signal(run_id, gymgui::trainer::RUN_STATUS_PAUSE,
         gymgui::trainer::RUN_STATUS_EXEC, SIGCONT, std::move(done));
}

void RunSupervisor::Signal(const std::string& run_id, RunState from,
                           RunState to, int signal, Done done) {
  loop_.Post([this, run_id, from, to, signal,
              done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    LiveRun* const run = *found;
    if (run->row.status == to) return done(absl::OkStatus());
    if (run->row.status != from || run->ending) {
      return done(absl::FailedPreconditionError(absl::StrCat(
          "expected the run to be ", NameOf(from), ", found it ",
          NameOf(run->row.status), run->ending ? ", being ended" : "")));
    }
    const absl::StatusOr<size_t> signalled =
        SignalTree({.token = run->row.token,
                    .roots = {FromProto(run->row.worker)},
                    .excluded = {}},
                   signal);
    if (!signalled.ok()) return done(signalled.status());
    MoveTo(run, to, std::nullopt);
    done(absl::OkStatus());
  });
}

void RunSupervisor::Delete(const std::string& run_id, Done done) {
  loop_.Post([this, run_id, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    if (!IsFinal((*found)->row.status) || (*found)->ending) {
      return done(absl::FailedPreconditionError(
          absl::StrCat("expected a run that has ended, found it ",
                       NameOf((*found)->row.status), "; cancel it first")));
    }
    runs_.erase(run_id);
    store_->DeleteRun(run_id, [folder = RunFolder::At(options_.data_dir, run_id),
                               done = std::move(done)](
                                  const absl::Status& status) mutable {
      done(status.ok() ? folder.Remove() : status);
    });
  });
}

void RunSupervisor::List(std::vector<RunState> states,
                         Answer<std::vector<RunRecord>> answer) {
  loop_.Post([this, states = std::move(states),
              answer = std::move(answer)]() mutable {
    std::map<uint64_t, const LiveRun*> in_order;
    for (const auto& [run_id, run] : runs_) {
      if (states.empty() || std::find(states.begin(), states.end(),
                                      run.row.status) != states.end()) {
        in_order[run.order] = &run;
      }
    }
    std::vector<RunRecord> records;
    for (const auto& [order, run] : in_order) {
      records.push_back(ToRecord(run->row));
    }
    answer(std::move(records));
  });
}

void RunSupervisor::Describe(std::vector<std::string> run_ids,
                             Answer<std::vector<v1::RunDescription>> answer) {
  loop_.Post([this, run_ids = std::move(run_ids),
              answer = std::move(answer)]() mutable {
    const bool all = run_ids.empty();
    if (all) {
      std::map<uint64_t, std::string> in_order;
      for (const auto& [run_id, run] : runs_) in_order[run.order] = run_id;
      for (auto& [order, run_id] : in_order) run_ids.push_back(run_id);
    }
    std::vector<v1::RunDescription> descriptions;
    for (const std::string& run_id : run_ids) {
      const absl::StatusOr<LiveRun*> run = FindOrError(run_id);
      if (!run.ok()) return answer(run.status());
      descriptions.push_back(slow_lane::Describe(
          **run, RunFolder::At(options_.data_dir, run_id).path()));
      if (all) descriptions.back().clear_config_json();
    }
    answer(std::move(descriptions));
  });
}

void RunSupervisor::Find(const std::string& run_id, Answer<bool> answer) {
  loop_.Post([this, run_id, answer = std::move(answer)]() mutable {
    const absl::StatusOr<LiveRun*> run = FindOrError(run_id);
    if (!run.ok()) return answer(run.status());
    answer(IsFinal((*run)->row.status));
  });
}

// What workers that speak gRPC ask for.

void RunSupervisor::Register(RegisterWorkerRequest request,
                             Answer<RegisterWorkerResponse> answer) {
  loop_.Post([this, request = std::move(request),
              answer = std::move(answer)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(request.run_id());
    if (!found.ok()) return answer(found.status());
    LiveRun* const run = *found;
    if (IsFinal(run->row.status) ||
        run->row.status == gymgui::trainer::RUN_STATUS_INIT) {
      return answer(absl::FailedPreconditionError(absl::StrCat(
          "expected a run whose worker was started, found it ",
          NameOf(run->row.status))));
    }
    std::string& token = run->session_tokens[request.worker_id()];
    token = MakeToken();
    RegisterWorkerResponse response;
    response.set_accepted_version(request.proto_version().empty()
                                      ? "MOSAIC/1.0"
                                      : request.proto_version());
    response.set_session_token(token);
    if (run->row.status == gymgui::trainer::RUN_STATUS_HSHK) {
      MoveTo(run, gymgui::trainer::RUN_STATUS_RDY, std::nullopt);
    }
    answer(std::move(response));
  });
}

void RunSupervisor::Admit(const std::string& run_id,
                          const std::string& session_token, Done done) {
  loop_.Post([this, run_id, session_token, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    const LiveRun& run = **found;
    if (IsFinal(run.row.status)) {
      return done(absl::FailedPreconditionError(absl::StrCat(
          "expected a run that goes on, found it ", NameOf(run.row.status))));
    }
    if (run.session_tokens.empty()) {
      return done(absl::FailedPreconditionError(
          "expected a registered worker, found none of this run; call "
          "RegisterWorker first (and again when the daemon was restarted)"));
    }
    done(CheckToken(run, session_token));
  });
}

void RunSupervisor::Beat(const std::string& run_id,
                         const std::string& session_token, Done done) {
  loop_.Post([this, run_id, session_token, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    const absl::Status valid = CheckToken(**found, session_token);
    if (valid.ok()) NoteBeat(*found);
    done(valid);
  });
}

// What proxies say.

void RunSupervisor::Link(const v1::Hello& hello,
                         std::shared_ptr<ProxyLink> link, Done done) {
  loop_.Post([this, hello, link = std::move(link),
              done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(hello.run_id());
    if (!found.ok()) return done(found.status());
    LiveRun* const run = *found;
    if (hello.token() != run->row.token) {
      return done(absl::UnauthenticatedError(
          "expected the run's own token (launch.json in its folder), found "
          "another one"));
    }
    if (run->link != nullptr) {
      run->link->Refuse("another link of this run's proxy took over");
    }
    run->link = std::move(link);
    run->backoff = absl::ZeroDuration();
    NoteBeat(run);
    if (IsFinal(run->row.status)) {
      run->link->Recorded();
    } else {
      if (!run->process.valid()) WatchProxy(run, FromProto(hello.proxy()));
      if (run->row.status == gymgui::trainer::RUN_STATUS_INIT) {
        MoveTo(run, gymgui::trainer::RUN_STATUS_HSHK, std::nullopt);
      }
    }
    done(absl::OkStatus());
  });
}

void RunSupervisor::Unlink(const std::string& run_id, const ProxyLink* link) {
  loop_.Post([this, run_id, link] {
    LiveRun* const run = Lookup(run_id);
    if (run != nullptr && run->link.get() == link) run->link.reset();
  });
}

void RunSupervisor::WorkerStarted(const std::string& run_id,
                                  v1::ProcessIdentity worker) {
  loop_.Post([this, run_id, worker = std::move(worker)] {
    LiveRun* const run = Lookup(run_id);
    if (run == nullptr || IsFinal(run->row.status)) return;
    run->row.worker = worker;
    if (run->row.status == gymgui::trainer::RUN_STATUS_HSHK) {
      MoveTo(run, gymgui::trainer::RUN_STATUS_RDY, std::nullopt);
    } else {
      Save(run);
    }
  });
}

void RunSupervisor::ProxyBeat(const std::string& run_id) {
  loop_.Post([this, run_id] {
    if (LiveRun* const run = Lookup(run_id); run != nullptr) NoteBeat(run);
  });
}

void RunSupervisor::WorkerEnded(const std::string& run_id,
                                v1::WorkerEnded ended) {
  loop_.Post([this, run_id, ended = std::move(ended)] {
    LiveRun* const run = Lookup(run_id);
    if (run == nullptr) return;
    if (IsFinal(run->row.status)) {
      if (run->link != nullptr) run->link->Recorded();
      return;
    }
    RunOutcome outcome = OutcomeOf(ended, run->end_reason);
    if (ended.has_unknown() && !run->end_reason.has_value()) {
      return EndByItsWord(run_id, std::move(outcome));
    }
    End(run, outcome.state, std::move(outcome.reason));
  });
}

void RunSupervisor::Committed(const std::string& run_id, const Numbers& last) {
  loop_.Post([this, run_id, last] {
    LiveRun* const run = Lookup(run_id);
    if (run == nullptr) return;
    run->last = last;
    if (run->row.status == gymgui::trainer::RUN_STATUS_RDY) {
      MoveTo(run, gymgui::trainer::RUN_STATUS_EXEC, std::nullopt);
    }
    CheckLimits(run);
  });
}

// The thread's own.

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
    run.order = ++last_order_;
    if (IsFinal(run.row.status)) continue;
    absl::StatusOr<RunConfig> config = ParseRunConfig(run.row.config_json);
    if (!config.ok()) {  // an earlier version's, which this one refuses
      End(&run, gymgui::trainer::RUN_STATUS_FAULT,
          absl::StrCat("its configuration is not valid any more: ",
                       config.status().message()));
      continue;
    }
    run.config = *std::move(config);
    run.last_beat_ns = now_ns;
    run.dispatched = run.row.proxy_starts > 0;
    gpus_.Mark(run.row.gpu_slots);
  }
}

void RunSupervisor::Dispatch() {
  std::map<uint64_t, LiveRun*> waiting;
  for (auto& [run_id, run] : runs_) {
    if (!run.dispatched && !IsFinal(run.row.status) && !run.ending) {
      waiting[run.order] = &run;
    }
  }
  for (const auto& [order, run] : waiting) {
    if (run->row.gpu_slots.empty() && run->config.gpus_requested > 0) {
      std::optional<std::vector<int32_t>> slots =
          gpus_.Take(run->config.gpus_requested, run->config.gpus_mandatory);
      if (!slots.has_value()) {
        run->waiting_for = absl::StrCat(run->config.gpus_requested, " GPUs");
        break;  // those behind it must not overtake it
      }
      run->row.gpu_slots = *std::move(slots);
    }
    if (const absl::Status ready = Prepare(run); !ready.ok()) {
      run->waiting_for = std::string(ready.message());
      continue;  // tried again at the next tick
    }
    run->waiting_for.clear();
    run->dispatched = true;
    StartProxy(run);
  }
}

absl::Status RunSupervisor::Prepare(LiveRun* run) {
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  if (const absl::Status made = folder.Create();
      !made.ok() && !absl::IsAlreadyExists(made)) {
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
          const absl::StatusOr<ProcessIdentity> proxy = SpawnProxy(
              RunFolder::At(options_.data_dir, run_id), run_id,
              options_.heartbeat, options_.kill_grace);
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
    for (const auto& [run_id, run] : runs_) {
      if (IsFinal(run.row.status) || run.row.worker.pid() != child.si_pid) {
        continue;
      }
      // A worker whose proxy died: only its parent is told how it ended.
      const WorkerExit end = {.how = child.si_code == CLD_EXITED
                                         ? WorkerExit::How::kExited
                                         : WorkerExit::How::kSignalled,
                              .number = child.si_status,
                              .reason = ""};
      RunFolder::At(options_.data_dir, run_id).WriteExit(end).IgnoreError();
    }
    waitid(P_PID, static_cast<id_t>(child.si_pid), &child, WEXITED);
    child = {};
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
      [this, row, durable = std::move(durable)](
          const absl::Status& status) mutable {
        if (!status.ok()) return;  // closing: the next daemon finds it as it was
        loop_.Post([this, row, durable = std::move(durable)]() mutable {
          if (LiveRun* const still = Lookup(row->run_id); still != nullptr) {
            still->row.update_seq =
                std::max(still->row.update_seq, row->update_seq);
          }
          hub_->Updated(row->update_seq);
          durable();
        });
      });
}

void RunSupervisor::Save(LiveRun* run) {
  store_->Post(
      [row = run->row](Database& database) { return SaveRun(database, row); },
      [](const absl::Status&) {});  // the next change of state says it again
}

void RunSupervisor::End(LiveRun* run, RunState state,
                        std::optional<std::string> reason) {
  gpus_.Release(run->row.gpu_slots);
  run->session_tokens.clear();
  run->unreachable = false;
  run->waiting_for.clear();
  MoveTo(run, state, std::move(reason), [this, run_id = run->row.run_id] {
    hub_->RunEnded(run_id);
    LiveRun* const still = Lookup(run_id);
    if (still == nullptr) return;
    if (still->link != nullptr) still->link->Recorded();
    if (!still->config.persist_logs) {
      const RunFolder folder = RunFolder::At(options_.data_dir, run_id);
      unlink(folder.stdout_path().c_str());
      unlink(folder.stderr_path().c_str());
    }
    if (!still->ending) AnswerCancel(still, absl::OkStatus());
  });
  Dispatch();
}

void RunSupervisor::EndByItsWord(const std::string& run_id,
                                 RunOutcome otherwise) {
  hub_->Read([this, run_id, otherwise = std::move(otherwise)](
                 EventReader& reader) mutable {
    bool completed = false;
    v1::EventBatch lifecycle;
    uint64_t since = 0;
    // Few events: a run has some at its boundaries.
    while (reader.Read(run_id, Stream::kLifecycle, since, {}, &lifecycle)
               .value_or(0) > 0) {
      since = lifecycle.lifecycle().rbegin()->seq_id();
      for (const v1::LifecycleEvent& event : lifecycle.lifecycle()) {
        completed |= event.event() == "run_completed";
      }
      lifecycle.Clear();
    }
    if (completed) otherwise = {gymgui::trainer::RUN_STATUS_TERM, std::nullopt};
    loop_.Post([this, run_id, otherwise = std::move(otherwise)]() mutable {
      LiveRun* const run = Lookup(run_id);
      if (run == nullptr || IsFinal(run->row.status)) return;
      End(run, otherwise.state, std::move(otherwise.reason));
    });
  });
}

void RunSupervisor::StartEnding(LiveRun* run, const std::string& why) {
  if (!run->end_reason.has_value()) run->end_reason = why;
  if (run->ending || IsFinal(run->row.status)) return;
  if (!run->dispatched) {
    return End(run, gymgui::trainer::RUN_STATUS_TERM, run->end_reason);
  }
  run->ending = true;
  const RunFolder folder = RunFolder::At(options_.data_dir, run->row.run_id);
  // It blocks for as long as the processes take.
  run->ender = std::thread([this, folder, run_id = run->row.run_id,
                            token = run->row.token, proxy = run->proxy,
                            grace = absl::ToDoubleSeconds(options_.kill_grace)] {
    const std::string problem =
        EndRunProcesses(folder, token, proxy, grace, grace + kKillSecs);
    loop_.Post([this, run_id, problem] { TreeEnded(run_id, problem); });
  });
}

void RunSupervisor::TreeEnded(const std::string& run_id,
                              const std::string& problem) {
  LiveRun* const run = Lookup(run_id);
  if (run == nullptr) return;
  run->ending = false;
  run->ender.join();
  if (!problem.empty()) {
    AnswerCancel(run, absl::InternalError(absl::StrCat(
                          "expected nothing of the run to be alive after "
                          "SIGKILL; ",
                          problem)));
  } else if (IsFinal(run->row.status)) {
    AnswerCancel(run, absl::OkStatus());
  } else {
    // The proxy still has to deliver what was printed last.
    loop_.After(kDrainLimit, [this, run_id] {
      if (LiveRun* const still = Lookup(run_id); still != nullptr) {
        AnswerCancel(still, absl::OkStatus());
      }
    });
  }
}

void RunSupervisor::CheckLimits(LiveRun* run) {
  if (IsFinal(run->row.status) || run->end_reason.has_value()) return;
  if (run->config.max_steps.has_value() &&
      run->last[Stream::kSteps] >= *run->config.max_steps) {
    StartEnding(run, absl::StrCat("schedule.max_steps = ",
                                  *run->config.max_steps, " reached"));
  } else if (run->config.max_duration_secs.has_value() &&
             run->row.worker.pid() != 0 &&
             SecondsSinceStart(FromProto(run->row.worker)) >=
                 static_cast<double>(*run->config.max_duration_secs)) {
    StartEnding(run, absl::StrCat("schedule.max_duration_seconds = ",
                                  *run->config.max_duration_secs, " reached"));
  }
}

void RunSupervisor::Tick() {
  const int64_t now_ns = MonotonicNanos();
  for (auto& [run_id, run] : runs_) {
    if (IsFinal(run.row.status)) continue;
    run.unreachable = now_ns - run.last_beat_ns >
                      absl::ToInt64Nanoseconds(options_.timeout);
    CountRate(&run, now_ns);
    CheckLimits(&run);
    if (run.dispatched) StartProxy(&run);
  }
  Dispatch();
  ForgetOld();
  loop_.After(kTick, [this] { Tick(); });
}

void RunSupervisor::ForgetOld() {
  if (!options_.keep_runs.has_value()) return;
  std::map<uint64_t, std::string> ended;
  for (const auto& [run_id, run] : runs_) {
    if (IsFinal(run.row.status) && !run.ending) ended[run.order] = run_id;
  }
  while (ended.size() > *options_.keep_runs) {
    Delete(ended.begin()->second, [](const absl::Status&) {});
    ended.erase(ended.begin());
  }
}

}  // namespace tandem::slow_lane

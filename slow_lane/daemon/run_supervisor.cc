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

}  // namespace

RunSupervisor::RunSupervisor(const Options& options, EventStore* store,
                             WatchHub* hub)
    : options_(options),
      descriptors_(RaiseDescriptorLimit()),
      store_(store),
      hub_(hub),
      gpus_(options.gpu_slots),
      sweeper_(options.data_dir),
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
  auto answer = [this] {
    for (auto& [run_id, run] : runs_) {
      AnswerCancel(&run, absl::AbortedError(
                             "the daemon is stopping; the run is being ended, "
                             "and the next daemon goes on with that"));
    }
  };
  // Behind what the store says of cancels that it does not have.
  store_->Post([](Database&) { return absl::OkStatus(); },
               [this, answer](const absl::Status&) { loop_.Post(answer); });
}

size_t RunSupervisor::Stop() {
  loop_.Stop();
  // The thread is gone: what it owned may be touched.
  for (auto& [run_id, run] : runs_) {
    if (run.helper.joinable()) run.helper.join();
  }
  return static_cast<size_t>(std::count_if(
      runs_.begin(), runs_.end(),
      [](const auto& entry) { return !IsFinal(entry.second.row.status); }));
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
      run.record = ToRecord(run.row);
      run.order = ++last_order_;
      run.config = std::move(config);
      hub_->Updated(run.row.update_seq);
      answer(Submitted{shared->run_id, shared->digest});
      Dispatch();
    });
  };
  store_->Post(
      [shared](Database& database) {
        return InsertRun(database, shared.get());
      },
      std::move(inserted));
}

void RunSupervisor::Cancel(const std::string& run_id, Done done) {
  loop_.Post([this, run_id, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    LiveRun* const run = *found;
    if (IsFinal(run->record.status())) return done(absl::OkStatus());
    run->cancel_waiters.push_back(std::move(done));
    if (IsFinal(run->row.status)) {  // about to be durable
      return AnswerCancelInTime(run_id);
    }
    if (!std::exchange(run->row.cancel_requested, true)) {
      Save(run, [this, run_id](const absl::Status& saved) {
        if (!saved.ok()) CancelIsLost(run_id);
      });
    }
    StartEnding(run, "cancelled");
  });
}

void RunSupervisor::CancelIsLost(const std::string& run_id) {
  loop_.Post([this, run_id] {
    LiveRun* const run = Lookup(run_id);
    if (run == nullptr) return;
    run->row.cancel_requested = false;
    AnswerCancel(run, absl::AbortedError(
                          "the daemon is stopping; the run is being ended, but "
                          "that it was cancelled is not written down: cancel "
                          "it again, once there is the next daemon"));
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
    auto now = [this, run, from, to, signal, done = std::move(done)]() mutable {
      SignalNow(run, from, to, signal, std::move(done));
    };
    // One that is being ended is not waited for: it refuses.
    run->end_reason.has_value() ? now() : WhenFree(run, std::move(now));
  });
}

void RunSupervisor::SignalNow(LiveRun* run, RunState from, RunState to,
                              int signal, Done done) {
  const auto refusal = [from](const LiveRun& found) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected the run to be ", NameOf(from), ", found it ",
                     NameOf(found.row.status),
                     found.end_reason.has_value() ? ", being ended" : ""));
  };
  if (run->row.status == to) return done(absl::OkStatus());
  if (run->row.status != from || run->end_reason.has_value()) {
    return done(refusal(*run));
  }
  WorkOn(run, [this, run, to, refusal, signal, query = QueryOf(*run),
               done = std::move(done)]() mutable {
    const absl::Status signalled = SignalTree(query, signal).status();
    return [this, run, to, refusal, signalled,
            done = std::move(done)]() mutable {
      if (!signalled.ok()) return done(signalled);
      MoveTo(run, to, std::nullopt);
      if (run->row.status != to) return done(refusal(*run));
      // Once that is durable, which is when others are told of it.
      store_->Post(
          [](Database&) { return absl::OkStatus(); },
          [this, done = std::move(done)](const absl::Status& durable) mutable {
            loop_.Post(
                [durable, done = std::move(done)]() mutable { done(durable); });
          });
    };
  });
}

void RunSupervisor::Delete(const std::string& run_id, Done done) {
  loop_.Post([this, run_id, done = std::move(done)]() mutable {
    const absl::StatusOr<LiveRun*> found = FindOrError(run_id);
    if (!found.ok()) return done(found.status());
    if (!IsFinal((*found)->row.status)) {
      return done(absl::FailedPreconditionError(
          absl::StrCat("expected a run that has ended, found it ",
                       NameOf((*found)->row.status), "; cancel it first")));
    }
    if ((*found)->busy) {
      return done(absl::AbortedError(
          "expected an ended run, found its end under way; delete it again"));
    }
    // Before the row goes: a later run of that name must not find it, whoever
    // is killed when.
    if (const absl::Status aside =
            RunFolder::At(options_.data_dir, run_id).SetAside();
        !aside.ok()) {
      return done(aside);
    }
    sweeper_.Sweep();
    // Its proxy may still be on its way out.
    if ((*found)->process.valid()) loop_.Unwatch((*found)->process.get());
    runs_.erase(run_id);
    store_->DeleteRun(run_id, std::move(done));
  });
}

void RunSupervisor::List(std::vector<RunState> states,
                         Answer<std::vector<RunRecord>> answer) {
  loop_.Post([this, states = std::move(states),
              answer = std::move(answer)]() mutable {
    std::map<uint64_t, const LiveRun*> in_order;
    for (const auto& [run_id, run] : runs_) {
      if (states.empty() || std::find(states.begin(), states.end(),
                                      run.record.status()) != states.end()) {
        in_order[run.order] = &run;
      }
    }
    std::vector<RunRecord> records;
    for (const auto& [order, run] : in_order) {
      records.push_back(ToRecord(*run));
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
    // Its last rows may still be on their way into the table: not yet.
    answer(IsFinal((*run)->record.status()));
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
      return answer(absl::FailedPreconditionError(
          absl::StrCat("expected a run whose worker was started, found it ",
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
  loop_.Post(
      [this, hello, link = std::move(link), done = std::move(done)]() mutable {
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
        run->output_problem.clear();  // another proxy may fare better
        run->vain_starts = 0;
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
    NoteRows(run, run->last, run->printed_steps);
  });
}

void RunSupervisor::ProxyBeat(const std::string& run_id) {
  loop_.Post([this, run_id] {
    if (LiveRun* const run = Lookup(run_id); run != nullptr) NoteBeat(run);
  });
}

void RunSupervisor::OutputFailed(const std::string& run_id,
                                 const std::string& problem) {
  loop_.Post([this, run_id, problem] {
    LiveRun* const run = Lookup(run_id);
    if (run != nullptr) run->output_problem = problem;
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

void RunSupervisor::Committed(const std::string& run_id, const Numbers& last,
                              uint64_t printed_steps) {
  loop_.Post([this, run_id, last, printed_steps] {
    LiveRun* const run = Lookup(run_id);
    if (run != nullptr) NoteRows(run, last, printed_steps);
  });
}

}  // namespace tandem::slow_lane

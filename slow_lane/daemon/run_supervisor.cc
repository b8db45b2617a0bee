#include "slow_lane/daemon/run_supervisor.h"

// Length: one class, with a short method for each call about a run.

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "slow_lane/daemon/worker_protocol.h"
#include "slow_lane/runs/run_id.h"
#include "slow_lane/runs/run_token.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::ControlEvent;
using gymgui::trainer::ListRunsResponse;
using gymgui::trainer::RegisterWorkerRequest;
using gymgui::trainer::RegisterWorkerResponse;
using gymgui::trainer::SubmitRunResponse;
using enum gymgui::trainer::RunStatus;

constexpr absl::Duration kTick = absl::Seconds(1);
// The minimum time that an ended run is kept: a watcher that polls each second,
// as tandemctl watch does, sees the final state.
constexpr absl::Duration kShownWhenEnded = absl::Seconds(5);

}  // namespace

RunSupervisor::RunSupervisor(const Options& options, EventStore* store,
                             WatchHub* hub)
    : options_(options),
      store_(store),
      hub_(hub),
      sweeper_(options.data_dir),
      runs_(&loop_, store, hub),
      starter_(options_, &loop_, &runs_),
      ends_(options_, &loop_, &runs_, &starter_, store, hub, &sweeper_),
      pauses_(&loop_, &runs_),
      loop_("runs") {}

RunSupervisor::~RunSupervisor() { Stop(); }

absl::StatusOr<std::unique_ptr<RunSupervisor>> RunSupervisor::Start(
    const Options& options, EventStore* store, WatchHub* hub) {
  auto supervisor =
      std::unique_ptr<RunSupervisor>(new RunSupervisor(options, store, hub));
  TANDEM_RETURN_IF_ERROR(supervisor->starter_.WatchChildren());
  // On the store's thread, before any other write.
  auto runs = std::make_shared<std::vector<StoredRun>>();
  std::promise<absl::Status> loaded;
  store->Post(
      [runs](Database& database) -> absl::Status {
        runs->clear();
        TANDEM_ASSIGN_OR_RETURN(std::vector<RunRow> rows, LoadRuns(database));
        for (RunRow& row : rows) {
          StoredRun& run = runs->emplace_back(StoredRun{std::move(row), {}});
          if (IsFinal(run.row.status)) continue;
          TANDEM_ASSIGN_OR_RETURN(run.progress,
                                  ReadProgress(database, run.row.run_id));
        }
        return absl::OkStatus();
      },
      [&loaded](const absl::Status& status) { loaded.set_value(status); });
  TANDEM_RETURN_IF_ERROR(loaded.get_future().get());
  supervisor->loop_.Post(
      [self = supervisor.get(), runs] { self->TakeUp(std::move(*runs)); });
  return supervisor;
}

template <typename Reply, typename Work>
void RunSupervisor::With(const std::string& run_id, Reply reply, Work work) {
  loop_.Post([this, run_id, reply = std::move(reply),
              work = std::move(work)]() mutable {
    const absl::StatusOr<LiveRun*> run = runs_.FindOrError(run_id);
    if (!run.ok()) return reply(run.status());
    work(*run, std::move(reply));
  });
}

template <typename Work>
void RunSupervisor::IfKnown(const std::string& run_id, Work work) {
  loop_.Post([this, run_id, work = std::move(work)]() mutable {
    if (LiveRun* const run = runs_.Find(run_id); run != nullptr) work(run);
  });
}

void RunSupervisor::TakeUp(std::vector<StoredRun> stored_runs) {
  const int64_t now_ns = MonotonicNanos();
  for (StoredRun& stored : stored_runs) {
    LiveRun* const run = runs_.Add(std::move(stored.row));
    run->last = stored.progress.last;
    run->printed_steps = stored.progress.position.steps();
    absl::StatusOr<RunConfig> config = ParseRunConfig(run->row.config_json);
    if (config.ok()) run->config = *std::move(config);
    if (IsFinal(run->row.status)) {
      run->ended_ns = now_ns;
      // The earlier daemon may have died before it removed them.
      ends_.RemoveUnwantedFiles(*run);
      continue;
    }
    if (!config.ok()) {  // this version refuses it; an earlier one did not
      ends_.End(run, RUN_STATUS_FAULT,
                absl::StrCat("its configuration is not valid any more: ",
                             config.status().message()));
      continue;
    }
    run->last_beat_ns = now_ns;
    run->dispatched = run->row.proxy_starts > 0;
    if (run->row.attempt_started_ns == 0) NoteAttemptsBegin(run);
    // In EXEC and PAUSE it has printed.
    run->is_awaited = run->config.fault_after_secs.has_value() &&
                      run->row.status >= RUN_STATUS_EXEC;
    starter_.TakeUp(run);
  }
}

void RunSupervisor::Begin(const std::string& address) {
  loop_.Post([this, address] {
    starter_.Open(address);
    for (LiveRun* const run : runs_.InOrder()) {
      if (run->row.cancel_requested) ends_.StartEnding(run, "cancelled");
    }
    Tick();
  });
}

void RunSupervisor::AnswerAll() {
  // After the store's answers about cancels that it did not save.
  runs_.WhenDurable([this](const absl::Status&) {
    pauses_.Stop();
    for (auto& [run_id, run] : runs_.all()) {
      AnswerCancel(&run, absl::AbortedError(
                             "the daemon is stopping; the run is being ended, "
                             "and the next daemon goes on with that"));
    }
  });
}

size_t RunSupervisor::Stop() {
  loop_.Stop();
  // The thread has ended, so this thread may use its members.
  runs_.JoinWork();
  return static_cast<size_t>(std::ranges::count_if(
      runs_.all(),
      [](const auto& entry) { return !IsFinal(entry.second.row.status); }));
}

// Calls from clients.

void RunSupervisor::Submit(std::string run_id, RunConfig config,
                           Answer<SubmitRunResponse> answer) {
  if (run_id.empty()) {
    run_id = MakeRunId();
  } else if (const absl::Status valid = CheckRunId(run_id); !valid.ok()) {
    return answer(valid);
  }
  if (const absl::Status fits = starter_.CheckFits(config); !fits.ok()) {
    return answer(fits);
  }
  auto row = std::make_shared<RunRow>();
  row->run_id = std::move(run_id);
  row->run_name = config.run_name;
  row->config_json = config.canonical_json;
  row->digest = config.digest;
  row->token = MakeToken();
  row->created_at_ns = row->updated_at_ns = UnixNanos();
  runs_.Store(
      [row](Database& database) { return InsertRun(database, row.get()); },
      [this, row, config = std::move(config),
       answer = std::move(answer)](const absl::Status& status) mutable {
        Inserted(*row, std::move(config), status, std::move(answer));
      });
}

void RunSupervisor::Inserted(const RunRow& row, RunConfig config,
                             const absl::Status& status,
                             Answer<SubmitRunResponse> answer) {
  SubmitRunResponse response;
  response.set_run_id(row.run_id);
  response.set_digest(row.digest);
  if (absl::IsAlreadyExists(status)) {
    // A repeated submission, such as of a client that did not get the answer.
    const LiveRun* const known = runs_.Find(row.run_id);
    if (known != nullptr && known->row.digest == row.digest) {
      return answer(response);
    }
    return answer(absl::AlreadyExistsError(absl::StrCat(
        "expected a run_id that is free, found a run '", row.run_id,
        "' with another configuration; submit without run_id to get a new "
        "one")));
  }
  if (!status.ok()) return answer(status);
  LiveRun* const run = runs_.Add(row);
  run->config = std::move(config);
  starter_.Enqueue(run);
  hub_->Updated(row.update_seq);
  answer(response);
  starter_.Dispatch();
}

void RunSupervisor::Cancel(const std::string& run_id, Done done) {
  With(run_id, std::move(done), [this](LiveRun* run, Done reply) {
    ends_.Cancel(run, std::move(reply));
  });
}

void RunSupervisor::Pause(const std::string& run_id, Done done) {
  With(run_id, std::move(done), [this](LiveRun* run, Done reply) {
    pauses_.Pause(run, std::move(reply));
  });
}

void RunSupervisor::Resume(const std::string& run_id, Done done) {
  With(run_id, std::move(done), [this](LiveRun* run, Done reply) {
    pauses_.Resume(run, std::move(reply));
  });
}

void RunSupervisor::Delete(const std::string& run_id, Done done) {
  With(run_id, std::move(done), [this, run_id](LiveRun* run, Done reply) {
    if (!IsFinal(run->row.status)) {
      return reply(absl::FailedPreconditionError(
          absl::StrCat("expected a run that has ended, found it ",
                       NameOf(run->row.status), "; cancel it first")));
    }
    if (run->busy || run->answer_limit.has_value()) {
      return reply(absl::AbortedError(
          "expected an ended run, found its end under way; delete it again"));
    }
    // Moves the folder before it deletes the row: if the daemon is killed in
    // between, a later run of that name does not find the folder.
    if (const absl::Status aside =
            RunFolder::At(options_.data_dir, run_id).SetAside();
        !aside.ok()) {
      return reply(aside);
    }
    sweeper_.Sweep();
    starter_.UnwatchProxy(run);  // the proxy may still live
    runs_.Erase(run_id);
    store_->DeleteRun(run_id, std::move(reply));
  });
}

void RunSupervisor::List(std::vector<RunState> states,
                         Answer<ListRunsResponse> answer) {
  loop_.Post([this, states = std::move(states),
              answer = std::move(answer)]() mutable {
    ListRunsResponse response;
    for (const LiveRun* const run : runs_.InOrder()) {
      if (states.empty() || std::find(states.begin(), states.end(),
                                      run->record.status()) != states.end()) {
        *response.add_runs() = ToRecord(*run);
      }
    }
    answer(std::move(response));
  });
}

void RunSupervisor::Describe(std::vector<std::string> run_ids,
                             Answer<std::vector<v1::RunDescription>> answer) {
  loop_.Post([this, run_ids = std::move(run_ids),
              answer = std::move(answer)]() mutable {
    const bool all = run_ids.empty();
    std::vector<LiveRun*> runs;
    if (all) runs = runs_.InOrder();
    for (const std::string& run_id : run_ids) {
      const absl::StatusOr<LiveRun*> run = runs_.FindOrError(run_id);
      if (!run.ok()) return answer(run.status());
      runs.push_back(*run);
    }
    starter_.NameWaits();
    std::vector<v1::RunDescription> descriptions;
    for (const LiveRun* const run : runs) {
      descriptions.push_back(slow_lane::Describe(
          *run, RunFolder::At(options_.data_dir, run->row.run_id).path()));
      descriptions.back().set_remark(starter_.AsksForMore(run->config));
      if (all) descriptions.back().clear_config_json();
    }
    answer(std::move(descriptions));
  });
}

void RunSupervisor::Find(const std::string& run_id, Answer<bool> answer) {
  With(run_id, std::move(answer), [](LiveRun* run, Answer<bool> reply) {
    // `record` is the durable state: all rows are in the table.
    reply(IsFinal(run->record.status()));
  });
}

// Calls from workers that use gRPC.

void RunSupervisor::Register(RegisterWorkerRequest request,
                             Answer<RegisterWorkerResponse> answer) {
  With(request.run_id(), std::move(answer),
       [this, request](LiveRun* run, Answer<RegisterWorkerResponse> reply) {
         if (IsFinal(run->row.status) || run->row.status == RUN_STATUS_INIT) {
           return reply(absl::FailedPreconditionError(absl::StrCat(
               "expected a run whose worker was started, found it ",
               NameOf(run->row.status))));
         }
         const absl::Status known = CheckVersions(request);
         if (!known.ok()) return reply(known);
         std::string& token = run->session_tokens[request.worker_id()];
         token = MakeToken();
         v1::RegisteredWorker& worker = run->row.workers[request.worker_id()];
         worker = ToWorker(request);
         // As a state, it is in the table later.
         runs_.Store(
             [run_id = request.run_id(), worker](Database& database) {
               return SaveWorker(database, run_id, worker);
             },
             [](const absl::Status&) {});
         RegisterWorkerResponse response;
         response.set_accepted_version(AcceptedVersion(request));
         response.set_session_token(token);
         runs_.MoveTo(run, RUN_STATUS_RDY);  // from HSHK only
         reply(std::move(response));
       });
}

void RunSupervisor::Admit(const std::string& run_id,
                          const std::string& session_token, Done done) {
  With(run_id, std::move(done), [session_token](LiveRun* run, Done reply) {
    const absl::Status goes_on = CheckGoesOn(*run);
    if (!goes_on.ok()) return reply(goes_on);
    if (run->session_tokens.empty()) {
      return reply(absl::FailedPreconditionError(
          "expected a registered worker, found none of this run; call "
          "RegisterWorker first (and again when the daemon was restarted)"));
    }
    reply(CheckToken(*run, session_token));
  });
}

void RunSupervisor::Heartbeat(const std::string& run_id,
                              const std::string& session_token, Done done) {
  With(run_id, std::move(done), [session_token](LiveRun* run, Done reply) {
    const absl::Status valid = CheckToken(*run, session_token);
    if (valid.ok()) {
      NoteHeartbeat(run);
      run->is_awaited = true;
      run->silence = absl::ZeroDuration();
    }
    reply(valid);
  });
}

void RunSupervisor::WorkerControl(const ControlEvent& event,
                                  const std::string& session_token,
                                  ControlSink* sink, Done done) {
  With(event.run_id(), std::move(done),
       [this, event, session_token, sink](LiveRun* run, Done reply) {
         const absl::StatusOr<std::string> worker =
             WorkerOf(*run, session_token);
         if (!worker.ok()) return reply(worker.status());
         if (run->row.workers[*worker].supports_pause()) {
           pauses_.Handle(run, *worker, event, sink);
         } else if (event.pause()) {
           return pauses_.Pause(run, std::move(reply));
         } else if (event.resume()) {
           return pauses_.Resume(run, std::move(reply));
         }
         reply(absl::OkStatus());
       });
}

void RunSupervisor::ForgetControl(const ControlSink* sink,
                                  EventLoop::Task gone) {
  loop_.Post([this, sink, gone = std::move(gone)]() mutable {
    pauses_.Forget(sink);
    gone();
  });
}

// Messages from proxies.

void RunSupervisor::Link(const v1::Hello& hello,
                         std::shared_ptr<ProxyLink> link, Done done) {
  With(hello.run_id(), std::move(done),
       [this, hello, link = std::move(link)](LiveRun* run, Done reply) mutable {
         const absl::Status ours = CheckRunToken(*run, hello.token());
         if (!ours.ok()) return reply(ours);
         if (std::max(hello.attempt(), 1u) != run->row.attempt) {
           link->Recorded();  // it reports an end that is durable
           return reply(absl::FailedPreconditionError(
               "expected the current attempt's proxy, found an earlier one's"));
         }
         if (run->link != nullptr) {
           run->link->Refuse("another link of this run's proxy took over");
         }
         run->link = std::move(link);
         run->waiting_for.clear();
         run->output_problem.clear();  // the new proxy may have no problem
         run->vain_starts = 0;
         run->backoff = absl::ZeroDuration();
         NoteHeartbeat(run);
         if (IsFinal(run->row.status)) {
           run->link->Recorded();
         } else {
           if (!run->process.valid() && !run->config.on_ray) {
             starter_.WatchProxy(run, FromProto(hello.proxy()));
           }
           runs_.MoveTo(run, RUN_STATUS_HSHK);  // from INIT only
         }
         reply(absl::OkStatus());
       });
}

void RunSupervisor::Unlink(const std::string& run_id, const ProxyLink* link) {
  IfKnown(run_id, [link](LiveRun* run) {
    if (run->link.get() == link) run->link.reset();
  });
}

void RunSupervisor::Handle(const std::string& run_id, v1::FromProxy message) {
  IfKnown(run_id, [this, message = std::move(message)](LiveRun* run) {
    switch (message.message_case()) {
      case v1::FromProxy::kWorkerStarted:
        return WorkerStarted(run, message.worker_started());
      case v1::FromProxy::kBeat:
      case v1::FromProxy::kFinishing:
        run->is_awaited &= !message.finishing();
        return NoteHeartbeat(run);
      case v1::FromProxy::kWorkerEnded:
        return ends_.WorkerEnded(run, message.worker_ended());
      case v1::FromProxy::kOutputProblem:
        run->output_problem = message.output_problem();
        return;
      default:
        return;  // a newer proxy's: ignored
    }
  });
}

void RunSupervisor::WorkerPrinted(const std::string& run_id, bool heartbeat) {
  IfKnown(run_id, [heartbeat](LiveRun* run) {
    run->is_awaited |= heartbeat || run->config.fault_after_secs.has_value();
    run->silence = absl::ZeroDuration();
  });
}

void RunSupervisor::AdmitRelay(const std::string& run_id,
                               const std::string& run_token, Done done) {
  With(run_id, std::move(done), [run_token](LiveRun* run, Done reply) {
    const absl::Status ours = CheckRunToken(*run, run_token);
    reply(ours.ok() ? CheckGoesOn(*run) : ours);
  });
}

void RunSupervisor::WorkerStarted(LiveRun* run,
                                  const v1::ProcessIdentity& worker) {
  if (IsFinal(run->row.status)) return;
  if (!run->config.on_ray) run->row.worker = worker;
  if (run->row.status == RUN_STATUS_HSHK) {
    runs_.MoveTo(run, RUN_STATUS_RDY);
  } else {
    runs_.Save(*run);
  }
  NoteRows(run, run->last, run->printed_steps);
}

void RunSupervisor::Committed(const std::string& run_id, const Numbers& last,
                              uint64_t printed_steps) {
  IfKnown(run_id, [this, last, printed_steps](LiveRun* run) {
    NoteRows(run, last, printed_steps);
  });
}

void RunSupervisor::NoteRows(LiveRun* run, const Numbers& last,
                             uint64_t printed_steps) {
  run->printed_steps = std::max(run->printed_steps, printed_steps);
  run->last.RaiseTo(last);
  if (run->row.status == RUN_STATUS_RDY &&
      run->last != run->row.attempt_begin) {
    runs_.MoveTo(run, RUN_STATUS_EXEC);
  }
  ends_.CheckSchedule(run);
}

void RunSupervisor::Tick() {
  const int64_t now_ns = MonotonicNanos();
  // If this process was stopped, workers' heartbeats wait for it.
  const absl::Duration passed =
      std::min(absl::Nanoseconds(now_ns - ticked_ns_), 2 * kTick);
  ticked_ns_ = now_ns;
  for (auto& [run_id, run] : runs_.all()) {
    if (IsFinal(run.row.status)) continue;
    run.unreachable = IsUnreachable(run, now_ns, options_.timeout);
    CountRate(&run, now_ns);
    ends_.CheckLimits(&run, passed);
    if (run.dispatched) starter_.StartProxy(&run);
    ends_.EndWithoutProxy(&run);
  }
  starter_.Dispatch();
  ForgetOld();
  loop_.After(kTick, [this] { Tick(); });
}

void RunSupervisor::ForgetOld() {
  if (!options_.keep_runs.has_value()) return;
  const int64_t seen_by_all_ns =
      MonotonicNanos() - absl::ToInt64Nanoseconds(kShownWhenEnded);
  std::vector<LiveRun*> ended = runs_.InOrder();
  std::erase_if(ended, [seen_by_all_ns](const LiveRun* run) {
    return run->ended_ns == 0 || run->ended_ns > seen_by_all_ns || run->busy;
  });
  for (size_t i = 0; i + *options_.keep_runs < ended.size(); ++i) {
    Delete(ended[i]->row.run_id, [](const absl::Status&) {});
  }
}

}  // namespace tandem::slow_lane

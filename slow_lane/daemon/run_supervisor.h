// RunSupervisor: handles every run from its submission to its end.
//
// Data flow: calls of clients and of proxies -> one thread (EventLoop) -> the
// runs (LiveRuns), their starts (RunStarter), pauses (RunPauses) and ends
// (RunEnds) -> the store, and processes.
// Ownership: the daemon owns it. Any thread may call it; no call blocks.
// Answers are called on the supervisor's thread, or on the store's after a
// commit; they must not block.
//
//   auto supervisor = RunSupervisor::Start(options, store, hub);
//   (*supervisor)->Begin("127.0.0.1:50055");
//   (*supervisor)->Submit("", *config, std::move(answer));
//
// Event                             state          action
// submitted, durable                INIT           starts a proxy, once
//                                                  processors and GPUs are free
// the proxy connects                HSHK           lets it launch the worker
// the worker's process exists       RDY
// its first event is durable        EXEC
// its processes are stopped         PAUSE
// the worker ended, all is durable  TERM or FAULT  frees GPUs, ends the proxy
//                                   or INIT        the same, and starts the
//                                                  next attempt
// the proxy ended                   unchanged      starts another one
// no heartbeat for the limit        unchanged      shows it as unreachable
// none of a worker that sent some   FAULT          ends its processes
// the daemon ended                  unchanged      the next one finds the
//                                                  proxies, or starts them

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/run_ends.h"
#include "slow_lane/daemon/run_pauses.h"
#include "slow_lane/daemon/run_starter.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/run_table.h"

namespace tandem::slow_lane {

class RunSupervisor {
 public:
  using Options = RunOptions;
  template <typename T>
  using Answer = absl::AnyInvocable<void(absl::StatusOr<T>)>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Reads the runs of an earlier daemon. Takes no action on them before Begin;
  // calls may arrive. `store` and `hub` must outlive this object.
  static absl::StatusOr<std::unique_ptr<RunSupervisor>> Start(
      const Options& options, EventStore* store, WatchHub* hub);
  ~RunSupervisor();

  // Starts waiting runs and missing proxies. `address`: the daemon's address
  // for clients, for TANDEM_DAEMON.
  void Begin(const std::string& address);

  // Calls of clients. Unknown runs are kNotFound.

  // Submits a run. An empty `run_id` gets a new one. An existing run_id with
  // the same configuration returns the same run. kAlreadyExists: it exists with
  // another configuration. kInvalidArgument: a run_id that is not valid for a
  // folder, or more GPUs than the daemon has; with strict_resources, more
  // processors or memory.
  void Submit(std::string run_id, RunConfig config,
              Answer<gymgui::trainer::SubmitRunResponse> answer);
  // Cancels a run; answers when no process of it is alive. OK for an ended run.
  // kAborted: the daemon is stopping, or cannot store the cancellation; the
  // message says whether the next daemon will continue it.
  void Cancel(const std::string& run_id, Done done);
  // Send SIGSTOP and SIGCONT to all its processes; workers that support pauses
  // are told first. kFailedPrecondition: the state is neither EXEC nor PAUSE.
  void Pause(const std::string& run_id, Done done);
  void Resume(const std::string& run_id, Done done);
  // Deletes an ended run; its folder's files are removed later.
  // kFailedPrecondition: it has not ended.
  void Delete(const std::string& run_id, Done done);
  // Lists runs in the order of their submission; empty `states`: all.
  void List(std::vector<RunState> states,
            Answer<gymgui::trainer::ListRunsResponse> answer);
  // Returns all fields except rows and positions, which are in the table.
  void Describe(std::vector<std::string> run_ids,
                Answer<std::vector<v1::RunDescription>> answer);
  // Answers whether the run has ended.
  void Find(const std::string& run_id, Answer<bool> answer);

  // Calls of workers that use gRPC.

  // Registers a worker. kFailedPrecondition: the run has ended, or has not
  // started; or the worker has another version of the protocol or the schema.
  void Register(gymgui::trainer::RegisterWorkerRequest request,
                Answer<gymgui::trainer::RegisterWorkerResponse> answer);
  // Checks whether a worker may publish. Empty `session_token`: it sent none.
  // kFailedPrecondition: not registered, or ended; kUnauthenticated: another
  // worker's token.
  void Admit(const std::string& run_id, const std::string& session_token,
             Done done);
  void Heartbeat(const std::string& run_id, const std::string& session_token,
                 Done done);
  // Handles a message of a ControlStream with a session token, unless it is
  // about credits or a rate. kUnauthenticated: as Admit. A worker that supports
  // pauses listens to them by it (RunPauses::Handle), and answers; `sink` must
  // exist until ForgetControl has called `gone`. The messages of other workers
  // are those of clients.
  void WorkerControl(const gymgui::trainer::ControlEvent& event,
                     const std::string& session_token, ControlSink* sink,
                     Done done);
  void ForgetControl(const ControlSink* sink, EventLoop::Task gone);

  // Messages of proxies.

  // OK: the caller is the run's proxy; `link` gets the end of the run.
  void Link(const v1::Hello& hello, std::shared_ptr<ProxyLink> link, Done done);
  void Unlink(const std::string& run_id, const ProxyLink* link);
  // Handles a message after hello, except a batch.
  void Handle(const std::string& run_id, v1::FromProxy message);
  // Notes a sign of life: a batch of what the worker has printed. `heartbeat`:
  // it has the lifecycle event of this name.
  void WorkerPrinted(const std::string& run_id, bool heartbeat);
  // Calls `work` on the thread of `loop` for what a proxy relays, and answers
  // with its result. `request` must live until the answer. On this object's
  // thread: kUnauthenticated: not the run's token; kFailedPrecondition: the run
  // has ended.
  template <typename Request, typename Response, typename Work>
  void Relay(const Request* request, EventLoop* loop, Answer<Response> answer,
             Work work) {
    AdmitRelay(request->run_id(), request->token(),
               [request, loop, answer = std::move(answer),
                work = std::move(work)](const absl::Status& admitted) mutable {
                 if (!admitted.ok()) return answer(admitted);
                 loop->Post([request, answer = std::move(answer),
                             work = std::move(work)]() mutable {
                   answer(work(*request));
                 });
               });
  }
  // The store calls this: rows of a run are durable up to `last`, and
  // `printed_steps` steps of its worker's output were read, stored or not.
  void Committed(const std::string& run_id, const Numbers& last,
                 uint64_t printed_steps);

  // Answers the callers of Cancel. The next daemon continues the cancellations.
  void AnswerAll();
  // Ends the thread. Returns the number of runs that continue under their
  // proxies.
  size_t Stop();

 private:
  RunSupervisor(const Options& options, EventStore* store, WatchHub* hub);

  // Calls `work` with the run and `reply` on the loop's thread. For an unknown
  // run, `reply` gets kNotFound.
  template <typename Reply, typename Work>
  void With(const std::string& run_id, Reply reply, Work work);
  // The same without an answer: does nothing for an unknown run.
  template <typename Work>
  void IfKnown(const std::string& run_id, Work work);

  // A run of an earlier daemon. `progress`: empty after its end.
  struct StoredRun {
    RunRow row;
    RunProgress progress;
  };

  void AdmitRelay(const std::string& run_id, const std::string& run_token,
                  Done done);

  // The loop's thread runs all of these.
  void TakeUp(std::vector<StoredRun> stored_runs);
  void Inserted(const RunRow& row, RunConfig config, const absl::Status& status,
                Answer<gymgui::trainer::SubmitRunResponse> answer);
  void WorkerStarted(LiveRun* run, const v1::ProcessIdentity& worker);
  // Raises the run's rows to at least `last`, and its printed steps to at least
  // `printed_steps`.
  void NoteRows(LiveRun* run, const Numbers& last, uint64_t printed_steps);
  void Tick();
  void ForgetOld();

  const Options options_;
  EventStore* const store_;
  WatchHub* const hub_;
  FolderSweeper sweeper_;
  LiveRuns runs_;
  RunStarter starter_;
  RunEnds ends_;
  RunPauses pauses_;
  int64_t ticked_ns_ = 0;  // monotonic clock, of the last Tick
  EventLoop loop_;         // last: its thread ends first
};

}  // namespace tandem::slow_lane

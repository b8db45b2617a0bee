// RunSupervisor: every run's life, from its submission to its end.
//
// Data flow: calls of clients and of proxies -> one thread (EventLoop) -> the
// runs (LiveRuns), their starts (RunStarter) and their ends (RunEnds) -> the
// store, and processes. Ownership: the daemon's. Calls come from any thread and
// never block. Answers come on the supervisor's thread, or on the store's once
// something is durable; they must not block.
//
//   auto supervisor = RunSupervisor::Start(options, store, hub);
//   (*supervisor)->Begin("127.0.0.1:50055");
//   (*supervisor)->Submit("", *config, std::move(answer));
//
// Event                             state          action
// submitted, durable                INIT           starts a proxy, once GPUs
//                                                  are free
// the proxy connects                HSHK           lets it launch the worker
// the worker's process exists       RDY
// its first event is durable        EXEC
// its processes are stopped         PAUSE
// the worker ended, all is durable  TERM or FAULT  frees GPUs, ends the proxy
// the proxy ended                   unchanged      starts another one
// no heartbeat for the limit        unchanged      shows it as unreachable
// the daemon ended                  unchanged      the next one finds the
//                                                  proxies, or starts them

#ifndef TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_
#define TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/event_loop.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/run_ends.h"
#include "slow_lane/daemon/run_starter.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class RunSupervisor {
 public:
  using Options = RunOptions;
  template <typename T>
  using Answer = absl::AnyInvocable<void(absl::StatusOr<T>)>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // Reads the runs that an earlier daemon left, and does nothing about them
  // before Begin; calls may come. `store` and `hub` outlive it.
  static absl::StatusOr<std::unique_ptr<RunSupervisor>> Start(
      const Options& options, EventStore* store, WatchHub* hub);
  ~RunSupervisor();

  // Starts waiting runs and missing proxies. `address`: where clients reach the
  // daemon, for TANDEM_DAEMON.
  void Begin(const std::string& address);

  // Calls of clients. Unknown runs are kNotFound.

  // Empty `run_id`: a new one. The same run_id with the same configuration is
  // the same run; with another one kAlreadyExists. kInvalidArgument: a run_id
  // that names no folder, or more GPUs than there are.
  void Submit(std::string run_id, RunConfig config,
              Answer<gymgui::trainer::SubmitRunResponse> answer);
  // Answered when nothing of the run is alive. OK for one that has ended.
  // kAborted: the daemon is stopping, or cannot store the cancellation; the
  // message says whether the next daemon knows of it.
  void Cancel(const std::string& run_id, Done done);
  // SIGSTOP and SIGCONT to all its processes. kFailedPrecondition: not EXEC,
  // not PAUSE.
  void Pause(const std::string& run_id, Done done);
  void Resume(const std::string& run_id, Done done);
  // Its folder's files are removed later. kFailedPrecondition: it has not
  // ended.
  void Delete(const std::string& run_id, Done done);
  // No states: all. In the order of their submission.
  void List(std::vector<RunState> states,
            Answer<gymgui::trainer::ListRunsResponse> answer);
  // All except rows and positions, which the table has.
  void Describe(std::vector<std::string> run_ids,
                Answer<std::vector<v1::RunDescription>> answer);
  // Whether the run has ended.
  void Find(const std::string& run_id, Answer<bool> answer);

  // Calls of workers that use gRPC.

  // kFailedPrecondition: the run has ended, or is not started yet.
  void Register(gymgui::trainer::RegisterWorkerRequest request,
                Answer<gymgui::trainer::RegisterWorkerResponse> answer);
  // Whether a worker may publish. Empty `session_token`: it showed none.
  // kFailedPrecondition: not registered, or ended; kUnauthenticated: another's
  // token.
  void Admit(const std::string& run_id, const std::string& session_token,
             Done done);
  void Heartbeat(const std::string& run_id, const std::string& session_token,
                 Done done);

  // Messages of proxies.

  // OK: it is the run's proxy; `link` gets the end of the run.
  void Link(const v1::Hello& hello, std::shared_ptr<ProxyLink> link, Done done);
  void Unlink(const std::string& run_id, const ProxyLink* link);
  // A message after hello, except a batch.
  void Handle(const std::string& run_id, v1::FromProxy message);
  // Rows of a run are durable up to `last`, and its worker's output up to so
  // many steps, stored or not.
  void Committed(const std::string& run_id, const Numbers& last,
                 uint64_t printed_steps);

  // Answers the callers of Cancel: the next daemon continues with it.
  void AnswerAll();
  // Ends the thread. Returns the number of runs that go on under their proxies.
  size_t Stop();

 private:
  RunSupervisor(const Options& options, EventStore* store, WatchHub* hub);

  // On the loop's thread: `work` with the run and `reply`; for an unknown run
  // kNotFound to `reply`.
  template <typename Reply, typename Work>
  void With(const std::string& run_id, Reply reply, Work work);
  // The same without an answer: nothing for an unknown run.
  template <typename Work>
  void IfKnown(const std::string& run_id, Work work);

  // All of these run on the loop's thread.
  void TakeUp(std::vector<RunRow> rows);
  void Inserted(const RunRow& row, RunConfig config, const absl::Status& status,
                Answer<gymgui::trainer::SubmitRunResponse> answer);
  void WorkerStarted(LiveRun* run, const v1::ProcessIdentity& worker);
  // The run has rows up to `last`, or more, of as many printed steps, or more.
  void NoteRows(LiveRun* run, const Numbers& last, uint64_t printed_steps);
  void Tick();
  void ForgetOld();
  void Signal(const std::string& run_id, RunState from, RunState to, int signal,
              Done done);
  void SignalNow(LiveRun* run, RunState from, RunState to, int signal,
                 Done done);

  const Options options_;
  EventStore* const store_;
  WatchHub* const hub_;
  FolderSweeper sweeper_;
  LiveRuns runs_;
  RunStarter starter_;
  RunEnds ends_;
  EventLoop loop_;  // last: its thread ends first
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_

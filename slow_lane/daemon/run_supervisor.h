// RunSupervisor: every run's life, from its submission to its end.
//
// Data flow: calls of clients and of proxies -> one thread (EventLoop) -> the
// states of runs in memory -> the store behind it, and processes.
// Ownership: the daemon's. Calls come from any thread and never block; answers
// are given on the supervisor's thread, or on the store's once something is
// durable: they must not block.
//
//   auto supervisor = RunSupervisor::Start(options, store, hub);
//   (*supervisor)->Begin("127.0.0.1:50055");
//   (*supervisor)->Submit("", *config, [](absl::StatusOr<Submitted> s) {...});
//
// What happens                        state            done about it
// submitted, durable                  INIT             proxy started, once its
//                                                      GPUs are free
// the proxy says hello                HSHK             it may launch
// the worker's process exists         RDY
// its first event is durable          EXEC
// its processes are stopped           PAUSE
// the worker ended, all is durable    TERM or FAULT    GPUs freed, proxy sent
//                                                      away
// the proxy died                      as it was        another one is started
// no beat for the limit               as it was        shown as unreachable
// the daemon died                     as it was        the next one finds the
//                                                      proxies, or starts them

#ifndef TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_
#define TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_

#include <sys/resource.h>

#include <cstdint>
#include <map>
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
#include "slow_lane/daemon/gpu_slots.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/folder_sweeper.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class RunSupervisor {
 public:
  struct Options {
    std::string data_dir;   // the working directory of daemon and proxies
    std::string start_dir;  // that of workers that name none
    absl::Duration heartbeat = absl::Seconds(60);
    absl::Duration timeout = absl::Seconds(300);
    absl::Duration kill_grace = absl::Seconds(5);
    int32_t gpu_slots = 0;
    std::optional<size_t> keep_runs;  // of those that have ended, the newest
  };
  template <typename T>
  using Answer = absl::AnyInvocable<void(absl::StatusOr<T>)>;
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  struct Submitted {
    std::string run_id;
    std::string digest;
  };

  // Knows what runs an earlier daemon left, and does nothing about them before
  // Begin: calls may come. `store` and `hub` outlive it.
  static absl::StatusOr<std::unique_ptr<RunSupervisor>> Start(
      const Options& options, EventStore* store, WatchHub* hub);
  ~RunSupervisor();

  // Starts what waits, and proxies that are missing. `address`: where clients
  // reach the daemon, for TANDEM_DAEMON.
  void Begin(const std::string& address);

  // What clients ask for. Unknown runs are kNotFound.

  // Empty `run_id`: a new one. The same run_id with the same configuration is
  // the same run; with another one kAlreadyExists. kInvalidArgument: a run_id
  // that names no folder, or more GPUs than there are.
  void Submit(std::string run_id, RunConfig config, Answer<Submitted> answer);
  // Answered when nothing of the run is alive. OK for one that has ended.
  // kAborted: the daemon is stopping, or that it is cancelled cannot be written
  // down; the message says whether the next daemon knows of it.
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
            Answer<std::vector<gymgui::trainer::RunRecord>> answer);
  // What only the supervisor knows; rows and positions are the table's.
  void Describe(std::vector<std::string> run_ids,
                Answer<std::vector<v1::RunDescription>> answer);
  // Whether the run has ended.
  void Find(const std::string& run_id, Answer<bool> answer);

  // What workers that speak gRPC ask for.

  // kFailedPrecondition: the run has ended, or is not started yet.
  void Register(gymgui::trainer::RegisterWorkerRequest request,
                Answer<gymgui::trainer::RegisterWorkerResponse> answer);
  // Whether a worker may publish. Empty `session_token`: it showed none.
  // kFailedPrecondition: not registered, or ended; kUnauthenticated: another's
  // token.
  void Admit(const std::string& run_id, const std::string& session_token,
             Done done);
  void Beat(const std::string& run_id, const std::string& session_token,
            Done done);

  // What proxies say.

  // OK: it is the run's proxy, and `link` is told when to leave.
  void Link(const v1::Hello& hello, std::shared_ptr<ProxyLink> link, Done done);
  void Unlink(const std::string& run_id, const ProxyLink* link);
  void WorkerStarted(const std::string& run_id, v1::ProcessIdentity worker);
  void ProxyBeat(const std::string& run_id);
  // Why what the worker prints cannot be read on; until the next link.
  void OutputFailed(const std::string& run_id, const std::string& problem);
  void WorkerEnded(const std::string& run_id, v1::WorkerEnded ended);
  // Rows of a run are durable up to `last`, and what its worker printed up to
  // so many steps, kept or not: the store's listener, and who has looked.
  void Committed(const std::string& run_id, const Numbers& last,
                 uint64_t printed_steps);

  // Answers who waits for a run to be cancelled: the next daemon goes on with
  // that.
  void AnswerAll();
  // Ends the thread. Runs go on under their proxies. How many do.
  size_t Stop();

 private:
  RunSupervisor(const Options& options, EventStore* store, WatchHub* hub);

  // All of these run on the loop's thread (run_supervisor_loop.cc,
  // and run_supervisor_ends.cc: how runs end).
  LiveRun* Lookup(const std::string& run_id);
  absl::StatusOr<LiveRun*> FindOrError(const std::string& run_id);
  void TakeUp(std::vector<RunRow> rows);
  void Insert(RunRow row, const RunConfig& config, Answer<Submitted> answer);
  // Starts what waits. Runs that ask for GPUs keep their order, as far as those
  // reach; others pass them.
  void Dispatch();
  absl::Status Prepare(LiveRun* run);
  void StartProxy(LiveRun* run);
  void WatchProxy(LiveRun* run, const ProcessIdentity& proxy);
  void ProxyGone(const std::string& run_id);
  void ReapChildren();
  // If it was a worker, whose proxy is dead: only its parent, this process, is
  // told how it ended.
  void RecordExit(const ProcessIdentity& ended, const WorkerExit& exit);
  // In memory now, in the table soon; then `durable`.
  void MoveTo(
      LiveRun* run, RunState state, std::optional<std::string> reason,
      absl::AnyInvocable<void()> durable = [] {});
  // In the table, soon; else the next change of state says it again.
  void Save(
      LiveRun* run, Done saved = [](const absl::Status&) {});
  void End(LiveRun* run, RunState state, std::optional<std::string> reason);
  // Its end is durable: of a run whose artifacts.persist_logs is false.
  void RemoveUnwantedLogs(const LiveRun& run);
  // Nobody saw how the worker ended: it is done if it ever said that it has
  // completed.
  void EndByItsWord(const std::string& run_id, RunOutcome otherwise);
  void StartEnding(LiveRun* run, const std::string& why);
  // `work` on a thread of the run's, then, here, what it returns. The run is
  // not busy.
  void WorkOn(LiveRun* run, absl::AnyInvocable<EventLoop::Task()> work);
  void WorkDone(const std::string& run_id, EventLoop::Task then);
  // Now, or once the run is not busy; in this order.
  void WhenFree(LiveRun* run, EventLoop::Task task);
  void TreeEnded(const std::string& run_id, const std::string& problem);
  // Nothing of the run is alive. Its last events may not be read yet, or the
  // disk be full: whoever waits is answered all the same after a while.
  void AnswerCancelInTime(const std::string& run_id);
  // The store closed before it had that the run was cancelled.
  void CancelIsLost(const std::string& run_id);
  // A run that can never be heard of again: it has no proxy, and no folder that
  // one could start in, and it was cancelled, or its worker is gone as well.
  void EndUnheard(LiveRun* run);
  // The run has rows up to `last`, or more, of as many printed steps, or more:
  // what follows from that.
  void NoteRows(LiveRun* run, const Numbers& last, uint64_t printed_steps);
  void CheckLimits(LiveRun* run);
  void Tick();
  void ForgetOld();
  void Signal(const std::string& run_id, RunState from, RunState to, int signal,
              Done done);
  void SignalNow(LiveRun* run, RunState from, RunState to, int signal,
                 Done done);

  const Options options_;
  const rlim_t descriptors_;  // that workers may open
  EventStore* const store_;
  WatchHub* const hub_;
  GpuSlots gpus_;
  std::map<std::string, LiveRun> runs_;
  uint64_t last_order_ = 0;
  std::string address_;
  UniqueFd children_;  // a signalfd of SIGCHLD
  FolderSweeper sweeper_;
  EventLoop loop_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_RUN_SUPERVISOR_H_

// LiveRun: the supervisor's state of a run. LiveRuns: all runs, in memory and
// in the table.
//
// Data flow: RunRow (the table) plus state of this daemon -> RunRecord,
// RunDescription (the wire). Changes of a run -> memory, at once -> the store
// -> once durable, the run's record and the hub. Ownership: the supervisor's;
// its thread (EventLoop) alone calls.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/os/unique_fd.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/machine_room.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/event_store.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// The daemon's settings for runs.
struct RunOptions {
  std::string data_dir;   // the working directory of daemon and proxies
  std::string start_dir;  // the default one of workers
  std::string public_address = {};  // the daemon's, for other machines
  absl::Duration heartbeat = absl::Seconds(60);
  absl::Duration timeout = absl::Seconds(300);
  absl::Duration fault_after = absl::Seconds(300);  // 0: never
  absl::Duration kill_grace = absl::Seconds(5);
  int32_t gpu_slots = 0;
  // What runs reserve and wait for; nullopt: they wait for GPUs only.
  std::optional<MachineShare> machine;
  bool strict_resources = false;    // refuse a run that asks for more
  std::optional<size_t> keep_runs;  // the newest ended ones
};

// A proxy's call. Both functions end it; any thread may call them.
class ProxyLink {
 public:
  virtual ~ProxyLink() = default;
  // The run's end is durable: the proxy may exit.
  virtual void Recorded() = 0;
  // The caller is not, or no longer, this run's proxy.
  virtual void Refuse(const std::string& reason) = 0;
};

// After this number of proxies in a row that exit with an error before they
// connect, no other is started.
constexpr int kVainStarts = 5;

// A worker's ControlStream, by which it is told of pauses.
struct PauseListener {
  std::string worker_id;
  ControlSink* sink = nullptr;
  bool told = false;      // the last message was `pause`
  bool answered = false;  // after that message
};

// Only the loop's thread uses it.
struct LiveRun {
  RunRow row;
  gymgui::trainer::RunRecord record;  // the last durable state
  uint64_t order = 0;                 // number of its submission
  RunConfig config;                   // default: no longer valid

  // The proxy. `process` is readable after its end; invalid: unknown.
  bool dispatched = false;  // its folder is complete, a proxy may start
  UniqueFd process;
  std::optional<ProcessIdentity> proxy;  // the newest known
  std::shared_ptr<ProxyLink> link;
  std::vector<int> cpus;  // its share, with enforce_resources
  int vain_starts = 0;    // of proxies in a row
  absl::Duration backoff = absl::ZeroDuration();
  int64_t next_start_ns = 0;

  std::map<std::string, std::string> session_tokens;  // by worker_id
  int64_t last_beat_ns = 0;                           // monotonic clock
  int64_t ended_ns = 0;  // time of the durable end; 0: none
  bool unreachable = false;
  // Whether silence of the worker is a fault: after a heartbeat; with
  // fault_after_secs, after anything that it has printed.
  bool is_awaited = false;
  absl::Duration silence = absl::ZeroDuration();  // without pauses
  std::string waiting_for;     // the reason of a delayed start
  std::string output_problem;  // the reason why its output is not read

  // True while `helper` works on the run's processes, which takes long. Other
  // work on them waits.
  bool busy = false;
  std::thread helper;
  std::deque<absl::AnyInvocable<void()>> when_free;

  // Used by RunPauses. `answer_limit` is set while a pause waits for the
  // listeners' answers; the pause is the first of `when_answered`, and later
  // calls follow.
  std::vector<PauseListener> pause_listeners;
  std::optional<EventLoop::TimerId> answer_limit;
  std::deque<EventLoop::Task> when_answered;

  // Set while the daemon ends the run: the reason, the final state, the cause
  // as in RunOutcome, and the callers of Cancel.
  std::optional<std::string> end_reason;
  RunState end_state = gymgui::trainer::RUN_STATUS_TERM;
  std::string end_cause;
  bool ending = false;  // its processes end, or will be ended
  std::vector<absl::AnyInvocable<void(const absl::Status&)>> cancel_waiters;

  // The number of rows, and their rate in the last seconds. The worker may
  // print more steps.
  Numbers last;
  uint64_t printed_steps = 0;
  Numbers counted;  // `last` at `counted_ns`
  int64_t counted_ns = 0;
  double steps_per_second = 0;
  double episodes_per_second = 0;
};

// Nanoseconds since 1970, for the table and for display.
int64_t UnixNanos();

// Sets the run's last heartbeat to the current time.
void NoteHeartbeat(LiveRun* run);
// Whether no heartbeat came for the time-out. A job that waits in Ray sends
// none.
bool IsUnreachable(const LiveRun& run, int64_t now_ns, absl::Duration timeout);
// kFailedPrecondition: the run's processes are Ray's, on any machine; the
// identities of its processes mean nothing on this one.
absl::Status CheckIsHere(const LiveRun& run);
// kUnauthenticated: not the run's own token.
absl::Status CheckRunToken(const LiveRun& run, const std::string& run_token);
// kFailedPrecondition: the run has ended.
absl::Status CheckGoesOn(const LiveRun& run);
// Notes that the rows and steps so far are those before the current attempt.
void NoteAttemptsBegin(LiveRun* run);
// Computes steps and episodes a second since the last call; called once a
// second.
void CountRate(LiveRun* run, int64_t now_ns);
// Answers all callers of Cancel.
void AnswerCancel(LiveRun* run, const absl::Status& status);
// Returns the worker_id of a session token; kUnauthenticated: not a token of
// the run's workers.
absl::StatusOr<std::string> WorkerOf(const LiveRun& run,
                                     const std::string& session_token);
// As WorkerOf, but an empty token is accepted, since MOSAIC's workers send
// none.
absl::Status CheckToken(const LiveRun& run, const std::string& session_token);

// Precedes the end of stderr in a run's failure reason.
inline constexpr char kStderrFollows[] = "; the last it wrote to stderr:\n";

struct RunOutcome {
  RunState state = gymgui::trainer::RUN_STATUS_FAULT;
  std::optional<std::string> reason;
  // As in metadata.tandem.restart. "killed": by a signal; "fault": an exit
  // code, or silence; "machine": unknown exit status; empty: success, never
  // started, or another end by the daemon.
  std::string cause = {};
};
// Returns the final state of a run after this end of its worker; the run's
// `end_*` if the daemon ended it.
RunOutcome OutcomeOf(const v1::WorkerEnded& ended, const LiveRun& run);

// Returns the query for all processes of the run except its proxy.
TreeQuery QueryOf(const LiveRun& run);

// seq_id is the row's update_seq.
gymgui::trainer::RunRecord ToRecord(const RunRow& row);
// Returns the last durable state, with its number, for clients.
gymgui::trainer::RunRecord ToRecord(const LiveRun& run);
// Returns all fields except those of the table.
v1::RunDescription Describe(const LiveRun& run, const std::string& folder);
// Adds the fields of the table.
void AddProgress(const RunProgress& progress, v1::RunDescription* run);

class LiveRuns {
 public:
  using Done = absl::AnyInvocable<void(const absl::Status&)>;

  // All three must outlive this object.
  LiveRuns(EventLoop* loop, EventStore* store, WatchHub* hub)
      : loop_(loop), store_(store), hub_(hub) {}

  // Adds a run that is already in the table.
  LiveRun* Add(RunRow row);
  // Returns nullptr for an unknown run.
  LiveRun* Find(const std::string& run_id);
  absl::StatusOr<LiveRun*> FindOrError(const std::string& run_id);
  std::vector<LiveRun*> InOrder();  // in the order of submission
  std::map<std::string, LiveRun>& all() { return runs_; }
  void Erase(const std::string& run_id) { runs_.erase(run_id); }

  // Changes the state in memory at once, and in the table later; then calls
  // `durable`. Has no effect if the transition is not allowed: a proxy's
  // message may be late.
  void MoveTo(
      LiveRun* run, RunState state,
      std::optional<std::string> reason = std::nullopt,
      absl::AnyInvocable<void()> durable = [] {});
  // Writes the run to the table later, then calls `saved` on the loop's thread.
  // After a failure, the next change of state writes it.
  void Save(
      const LiveRun& run, Done saved = [](const absl::Status&) {});
  // Posts a change to the store; calls `done` on the loop's thread.
  void Store(EventStore::Change change, Done done);
  // Calls `done` on the loop's thread after all earlier changes are durable.
  void WhenDurable(Done done);

  // Runs `work` on the run's own thread, then its result on the loop's thread.
  // The run must not be busy; it is busy until then.
  void WorkOn(LiveRun* run, absl::AnyInvocable<EventLoop::Task()> work);
  // Runs `task` now, or as soon as the run is not busy, in the order of the
  // calls.
  void WhenFree(LiveRun* run, EventLoop::Task task);
  // Waits for the threads of WorkOn. Call it after the loop has ended.
  void JoinWork();

 private:
  void WorkDone(const std::string& run_id, EventLoop::Task then);

  EventLoop* const loop_;
  EventStore* const store_;
  WatchHub* const hub_;
  std::map<std::string, LiveRun> runs_;
  uint64_t last_order_ = 0;
};

}  // namespace tandem::slow_lane

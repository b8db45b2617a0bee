// LiveRun: what the supervisor holds of a run.
//
// Data flow: RunRow (the table) plus what dies with the daemon -> RunRecord,
// RunDescription (the wire).
//
//   gymgui::trainer::RunRecord record = ToRecord(run);

#ifndef TANDEM_SLOW_LANE_DAEMON_LIVE_RUN_H_
#define TANDEM_SLOW_LANE_DAEMON_LIVE_RUN_H_

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
#include "absl/time/time.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_reader.h"
#include "slow_lane/store/run_table.h"
#include "slow_lane/store/stream.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// A proxy's call. Both end it; from any thread.
class ProxyLink {
 public:
  virtual ~ProxyLink() = default;
  // The run's end is durable: the proxy may leave.
  virtual void Recorded() = 0;
  // Not this run's proxy, or no more.
  virtual void Refuse(const std::string& reason) = 0;
};

// So many proxies, one after the other, that exit with an error before they
// have said hello: no more will.
constexpr int kVainStarts = 5;

// One thread's.
struct LiveRun {
  RunRow row;
  gymgui::trainer::RunRecord record;  // of its last state that is durable
  uint64_t order = 0;                 // of submission
  RunConfig config;                   // the default: it is not valid any more

  // The proxy. `process` is readable once it has ended; invalid: none is known.
  bool dispatched = false;  // its folder is complete, a proxy may be started
  UniqueFd process;
  std::optional<ProcessIdentity> proxy;  // the newest that is known
  std::shared_ptr<ProxyLink> link;
  int vain_starts = 0;  // of proxies, one after the other, that gave up at once
  absl::Duration backoff = absl::ZeroDuration();
  int64_t next_start_ns = 0;

  std::map<std::string, std::string> session_tokens;  // by worker_id
  int64_t last_beat_ns = 0;                           // by the monotonic clock
  int64_t ended_ns = 0;  // likewise: when that was durable, or found so; 0: not
  bool unreachable = false;
  std::string waiting_for;     // why it is not started yet, for people
  std::string output_problem;  // why its output is not read on, likewise

  // `helper` is at work on its processes, which takes a while; what else is to
  // be done about them waits.
  bool busy = false;
  std::thread helper;
  std::deque<absl::AnyInvocable<void()>> when_free;

  // Being ended by us: why, and who waits.
  std::optional<std::string> end_reason;
  bool ending = false;  // its processes are, or will be
  std::vector<absl::AnyInvocable<void(const absl::Status&)>> cancel_waiters;

  // Rows, and how fast they came in the last seconds; printed ones may be more.
  Numbers last;
  uint64_t printed_steps = 0;
  uint64_t counted_steps = 0;
  int64_t counted_ns = 0;
  double steps_per_second = 0;
};

// Since 1970, for the table and for people.
int64_t UnixNanos();

// It was heard of: now is its last beat.
void NoteBeat(LiveRun* run);
// Steps a second since the last call; once a second.
void CountRate(LiveRun* run, int64_t now_ns);
// Answers all who wait for the run to be cancelled.
void AnswerCancel(LiveRun* run, const absl::Status& status);
// kUnauthenticated: a token that is none of the run's workers'. Empty: none was
// shown, and it passes, as MOSAIC's workers show none.
absl::Status CheckToken(const LiveRun& run, const std::string& session_token);

struct RunOutcome {
  RunState state = gymgui::trainer::RUN_STATUS_FAULT;
  std::optional<std::string> reason;
};
// What becomes of a run whose worker ended so; `end_reason` where that was our
// doing.
RunOutcome OutcomeOf(const v1::WorkerEnded& ended,
                     const std::optional<std::string>& end_reason);

// seq_id is that of the run's last change of state.
gymgui::trainer::RunRecord ToRecord(const RunRow& row);
// What clients are told: a state that is durable, by its own number.
gymgui::trainer::RunRecord ToRecord(const LiveRun& run);
gymgui::trainer::RunRecord ToRecord(const RunUpdate& update);
// All but what the table knows.
v1::RunDescription Describe(const LiveRun& run, const std::string& folder);
// What the table knows.
void AddProgress(const RunProgress& progress, v1::RunDescription* run);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_LIVE_RUN_H_

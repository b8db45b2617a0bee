// DaemonClient: the calls of a front end to the slow lane's daemon: the list of
// its runs, submit, cancel, pause, resume.
//
// Data flow: a front end -> gRPC, by schema/protos alone -> the daemon.
// Ownership: any number of clients; thread-safe. Opens no connection before the
// first call, and connects again after the daemon was restarted.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "viz/core/run_curves.h"

namespace tandem {

struct DaemonRun {
  std::string run_id;
  std::string name;
  // MOSAIC's words: "INIT", "HSHK", "RDY", "EXEC", "PAUSE", "FAULT", "TERM".
  std::string state;
  bool has_ended = false;
  std::string reason;          // of its end, or what the run waits for
  std::string failure_line;    // of a FAULT: the last line of its exception
  std::string remark;          // what differs from the configuration
  std::string folder;          // of its files
  double created_secs = 0;     // since 1970
  uint64_t steps = 0;          // printed by the worker
  uint64_t attempt_steps = 0;  // by the last attempt, printed or stored
  uint64_t episodes = 0;
  uint64_t scalars = 0;               // rows of the run's own numbers
  std::optional<uint64_t> max_steps;  // of attempt_steps
  std::optional<double> mean_return;  // of the last episodes; none: also NaN
  uint32_t mean_of = 0;               // how many they are: at most 100
  double steps_per_second = 0;
  double episodes_per_second = 0;
  std::vector<RunAttempt> attempts;  // the last one is the current one
  std::map<std::string, std::string> parameters;
  bool unreachable = false;  // no heartbeat for longer than the daemon's limit
  int32_t worker_pid = 0;    // 0: not started
  // Registered workers with their capabilities, for display, such as
  // "learner (MOSAIC/1.0, pause)".
  std::vector<std::string> workers;
  // From the run's folder, by AsyncDaemonClient.
  bool wants_frames = false;  // WantsFrames
  std::string evaluation;     // EvalSummaryText of eval_summary.json; "": none
  friend bool operator==(const DaemonRun&, const DaemonRun&) = default;
};

// "EXEC", or "EXEC, unreachable".
std::string StateText(const DaemonRun& run);
// "1,200 of 5,000 steps, 42/s, 3 episodes, mean return 1.5 of the last 3".
std::string FactsText(const DaemonRun& run);

struct DaemonRuns {
  std::string state;  // "ok", or the daemon's problem, such as a full disk
  std::vector<DaemonRun> runs;  // in the order of their submission
};

// Each call blocks, at most kTimeoutSecs, Cancel at most kCancelSecs. Errors
// have the daemon's code and text; kUnavailable: nothing listens at the target.
class DaemonClient {
 public:
  static constexpr double kTimeoutSecs = 10;
  static constexpr double kCancelSecs = 60;

  explicit DaemonClient(const std::string& target);
  DaemonClient(const DaemonClient&) = delete;
  DaemonClient& operator=(const DaemonClient&) = delete;
  ~DaemonClient();

  const std::string& target() const { return target_; }

  absl::StatusOr<DaemonRuns> ListRuns() const;

  // Adds the stored episodes behind those of `curves`, and with `with_scalars`
  // the run's own numbers. Reads for at most kCurvesSecs; returns whether
  // everything was read.
  static constexpr double kCurvesSecs = 0.25;
  absl::StatusOr<bool> ReadCurves(const std::string& run_id, bool with_scalars,
                                  RunCurves* curves) const;
  // Returns the run's id. `config_json`: a TrainRunConfig
  // (slow_lane/docs/slow_lane.md).
  absl::StatusOr<std::string> Submit(const std::string& config_json) const;
  // Ends a run with all its processes; no effect on an ended run.
  absl::Status Cancel(const std::string& run_id) const;
  // Stops a run's processes, or continues them.
  absl::Status SetPaused(const std::string& run_id, bool paused) const;

 private:
  struct Stubs;
  const std::string target_;
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace tandem

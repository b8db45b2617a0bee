// AsyncDaemonClient: what a front end shows of the daemon's runs and does with
// them, without waiting.
//
// Data flow: DaemonClient::ListRuns, on a thread -> the newest list; a user's
// action -> DaemonClient, on another thread -> Pending.
// Ownership: one front end; its one thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "viz/core/background.h"
#include "viz/core/daemon_client.h"

namespace tandem {

// The text of an empty form: a TrainRunConfig (slow_lane/docs/slow_lane.md).
inline constexpr absl::string_view kExampleConfig = R"({
 "run_name": "example",
 "entry_point": "python3",
 "arguments": ["train.py"],
 "environment": {},
 "resources": {"cpus": 1, "memory_mb": 1024, "gpus": {"requested": 0}},
 "artifacts": {}
})";

struct SubmitRun {
  std::string config;  // a TrainRunConfig (slow_lane/docs/slow_lane.md)
};
struct CancelRun {
  std::string run_id;
};
struct PauseRun {
  std::string run_id;
  bool on = false;  // false: resume
};
using DaemonAction = std::variant<SubmitRun, CancelRun, PauseRun>;

class AsyncDaemonClient {
 public:
  struct List {
    // Why there is no new list, or the daemon's problem; "": none.
    std::string problem;
    // In the order of their submission. While the daemon does not answer: those
    // of its last answer, `unreachable` unless they had ended.
    std::vector<DaemonRun> runs;
  };
  static constexpr size_t kMostConfigBytes = size_t{256} << 10;  // of a form

  explicit AsyncDaemonClient(const std::string& target) : client_(target) {}
  AsyncDaemonClient(const AsyncDaemonClient&) = delete;
  AsyncDaemonClient& operator=(const AsyncDaemonClient&) = delete;

  const std::string& target() const { return client_.target(); }

  // As SlowRead::Newest.
  std::shared_ptr<const List> Runs(int64_t now_ns, int64_t not_before_ns);

  // The run of the newest list; nullptr: it is not there.
  const DaemonRun* Find(const std::string& run_id) const;

  // Calls `ask` in the background, for something to show; as Act.
  std::shared_ptr<Pending> Ask(
      std::function<absl::StatusOr<std::string>(const DaemonClient& client)>
          ask);

  // As AsyncEngineControl::Act; a submission's result names the new run.
  std::shared_ptr<Pending> Act(
      const DaemonAction& action,
      std::function<void(const absl::Status& status)> done = {});

 private:
  List Read();
  absl::StatusOr<std::string> Perform(const DaemonAction& action) const;

  const DaemonClient client_;  // any thread
  // What the runs' folders say; only of the list's thread.
  struct Folder {
    bool wants_frames = false;
    bool has_ended = false;  // `evaluation` is the last one
    std::string evaluation;
  };
  std::map<std::string, Folder> folders_;
  std::vector<DaemonRun> last_runs_;  // of the daemon's last answer
  std::shared_ptr<const List> newest_;
  std::shared_ptr<SlowRead<List>> list_ = std::make_shared<SlowRead<List>>();
  // Last: they use the members above.
  WorkThread action_thread_;
  WorkThread list_thread_;
  WorkThread ask_thread_;
};

}  // namespace tandem

// Cockpit: the server's model: what all browsers share.
//
// Data flow: shared memory, the daemon -> runs, feeds, reports -> PageSession;
// a browser's actions -> engines and the daemon.
// Ownership: one server. Its thread calls everything; calls that block run on
// threads of the Cockpit, and their results are polled.
//
//   Cockpit cockpit({.control = true, .daemon_target = DaemonTarget()});
//   cockpit.Poll(MonotonicNanos());
//   std::shared_ptr<RunFeed> feed = cockpit.Feed("demo");
//   std::shared_ptr<Pending> pending = cockpit.Act({.what = "pause", ...});

#ifndef TANDEM_VIZ_WEB_COCKPIT_H_
#define TANDEM_VIZ_WEB_COCKPIT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "viz/core/daemon_client.h"
#include "viz/core/engine_control.h"
#include "viz/core/event_follower.h"
#include "viz/core/run_list.h"
#include "viz/inspect/inspection.h"
#include "viz/web/run_feed.h"
#include "viz/web/work_thread.h"

namespace tandem {

// The result of an action, when it is there: a text for the user, such as the
// path of a recording, or the reason of a failure.
class Pending {
 public:
  void Set(absl::StatusOr<std::string> result) {
    absl::MutexLock lock(&mutex_);
    result_ = std::move(result);
  }
  std::optional<absl::StatusOr<std::string>> Get() const {
    absl::MutexLock lock(&mutex_);
    return result_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<absl::StatusOr<std::string>> result_ ABSL_GUARDED_BY(mutex_);
};

struct Action {
  // On an engine: "switch" (service, on), "pause" (on), "step", "mode" (mode).
  // On a watched run: "record" (on).
  // On a run of the daemon: "submit" (text), "cancel", "hold" (on).
  std::string what = {};
  std::string target = {};  // the region, or the run id
  std::string service = {};
  std::string mode = {};
  std::string text = {};  // a configuration
  bool on = false;
};

class Cockpit {
 public:
  struct Options {
    bool control = false;            // whether browsers may act
    std::string daemon_target = {};  // "": no daemon
    std::string recordings = ".";    // folder
  };

  static constexpr int64_t kScanNs = 1'000'000'000;
  // The maximum of watched runs, and of the memory of all their tapes.
  static constexpr size_t kMostFeeds = 64;
  static constexpr size_t kTapesBytes = size_t{256} << 20;
  static constexpr size_t kMostFollowers = 16;  // of two threads each

  explicit Cockpit(const Options& options);
  Cockpit(const Cockpit&) = delete;
  Cockpit& operator=(const Cockpit&) = delete;

  const Options& options() const { return options_; }

  // Polls every feed, and scans the runs once a second.
  void Poll(int64_t now_ns);

  // The list of runs as a JSON array, and a number that changes with it.
  const std::string& runs_json() const { return runs_json_; }
  uint64_t runs_version() const { return runs_version_; }

  // Returns the run's feed, a new one if no view has it; nullptr: kMostFeeds
  // runs are watched.
  std::shared_ptr<RunFeed> Feed(const std::string& run);
  size_t feeds() const { return feeds_.size(); }
  // The same for a run of the daemon; nullptr: there is no daemon, or
  // kMostFollowers runs are followed.
  std::shared_ptr<EventFollower> Follower(const std::string& run_id);
  // Whether frames must be polled also without a browser.
  bool records() const { return !recorded_.empty(); }

  // Each returns the newest JSON whose reading began at `not_before_ns` or
  // later, "" if there is none yet. Requests a new one in the background if it
  // is older than that, or than a second.
  std::string Report(const std::string& region, int64_t now_ns,
                     int64_t not_before_ns);
  std::string DaemonReport(int64_t now_ns, int64_t not_before_ns);

  // Starts an action. Its status is not OK if options().control is false, or if
  // the action is unknown, refused or failed. Writes a line into the log.
  std::shared_ptr<Pending> Act(const Action& action);

 private:
  // JSON that one of the reports' threads reads.
  struct Background {
    std::string json ABSL_GUARDED_BY(mutex);
    int64_t json_ns ABSL_GUARDED_BY(mutex) = 0;  // the begin of its reading
    bool reading ABSL_GUARDED_BY(mutex) = false;
    int64_t requested_ns = 0;
    int64_t wanted_ns = 0;  // the last request of a browser
    absl::Mutex mutex;
  };
  static std::string Newest(const std::shared_ptr<Background>& report,
                            WorkThread* thread, int64_t now_ns,
                            int64_t not_before_ns,
                            std::function<std::string()> read);
  void Record(const Action& action, std::shared_ptr<Pending> pending);
  void EndBrokenRecordings();
  // On one of the actions' threads.
  absl::StatusOr<std::string> Perform(const Action& action);
  absl::Status PerformOnEngine(const Action& action);
  // On one of the reports' threads.
  std::string ReadReport(const std::string& region);
  std::string ReadDaemon() const;

  const Options options_;
  RunList run_list_;
  std::optional<int64_t> scanned_ns_;
  std::string runs_json_ = "[]";
  uint64_t runs_version_ = 1;
  std::map<std::string, std::weak_ptr<RunFeed>> feeds_;
  std::map<std::string, std::weak_ptr<EventFollower>> followers_;
  // A recording goes on without a browser.
  std::map<std::string, std::shared_ptr<RunFeed>> recorded_;
  std::map<std::string, std::shared_ptr<Background>> reports_;
  std::shared_ptr<Background> daemon_report_ = std::make_shared<Background>();

  const std::unique_ptr<DaemonClient> daemon_;  // any thread; may be nullptr
  Inspector inspector_;                         // engine_reports_
  // Of engines that this program has paused. Of engine_actions_.
  std::map<std::string, EngineControl> paused_;
  // Last: they use the members above.
  // A call to the daemon may take a minute; engines do not wait for it.
  WorkThread engine_actions_;
  WorkThread engine_reports_;
  WorkThread daemon_actions_;
  WorkThread daemon_reports_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_WEB_COCKPIT_H_

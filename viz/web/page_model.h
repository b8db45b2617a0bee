// PageModel: the server's model: what all browsers share.
//
// Data flow: shared memory, the daemon -> runs, feeds, reports -> PageSession;
// a browser's actions -> engines and the daemon.
// Ownership: one server. Its thread calls everything; calls that block run on
// threads of engines_ and daemon_, and their results are polled.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "viz/core/async_daemon_client.h"
#include "viz/core/background.h"
#include "viz/core/mp4_recorder.h"
#include "viz/core/run_curves.h"
#include "viz/core/run_list.h"
#include "viz/inspect/async_engine_control.h"
#include "viz/web/run_feed.h"

namespace tandem {

struct EngineCommand {
  std::string region;
  EngineAction action;
};
struct RecordRun {
  std::string run;  // a watched one
  bool on = false;
};
struct UnknownAction {
  std::string what;
};
using PageAction = std::variant<EngineCommand, RecordRun, SubmitRun, CancelRun,
                                PauseRun, UnknownAction>;

class PageModel {
 public:
  struct Options {
    bool control = false;            // whether browsers may act
    std::string daemon_target = {};  // "": no daemon
    std::string recordings = ".";    // folder
  };

  static constexpr int64_t kScanNs = 1'000'000'000;
  static constexpr size_t kMostFeeds = 64;  // of watched runs

  explicit PageModel(const Options& options);
  PageModel(const PageModel&) = delete;
  PageModel& operator=(const PageModel&) = delete;
  ~PageModel();  // ends the recordings, as RecordingEnds

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
  // Returns the scene of a feed.
  std::shared_ptr<SceneWatch> Scene(RunFeed* feed) {
    return feed->Scene(&scene_thread_);
  }
  // Returns the GLB of a watched scene's model (SceneWatch::model); nullptr:
  // none has this number.
  std::shared_ptr<const std::string> Glb(int64_t model) const;
  // Whether frames must be polled also without a browser.
  bool records() const {
    return !recorded_.empty() || !recorded_scenes_.empty();
  }
  bool RecordsScene(const std::string& run) const {
    return recorded_scenes_.contains(run);
  }

  // The daemon's report, as JSON objects.
  struct DaemonTexts {
    std::string head;  // target, problem
    // Ids and runs, in the order of their submission.
    std::vector<std::pair<std::string, std::string>> runs;
  };

  // Each returns the newest JSON whose reading began at `not_before_ns` or
  // later; "" or nullptr: none yet (SlowRead::Newest).
  std::string Report(const std::string& region, int64_t now_ns,
                     int64_t not_before_ns);
  std::shared_ptr<const DaemonTexts> DaemonReport(int64_t now_ns,
                                                  int64_t not_before_ns);

  // Requests curves of a run's last attempt, as a JSON object: those at the
  // places `which`, in at most `points` buckets; `names`: also the names of
  // all, and its own numbers.
  std::shared_ptr<Pending> Curves(const std::string& run_id,
                                  std::vector<uint32_t> which, size_t points,
                                  bool names);
  // Requests a part of a log. `which`: a word of LogKindOf; `end`: as
  // ReadLogTail's.
  std::shared_ptr<Pending> Log(const std::string& run_id,
                               const std::string& which,
                               std::optional<uint64_t> end);

  // Starts an action. Its status is not OK if options().control is false, or if
  // the action is unknown, refused or failed. Writes a line into the log.
  std::shared_ptr<Pending> Act(const PageAction& action);

 private:
  std::shared_ptr<Pending> Record(const RecordRun& action);
  // Ends the recording of a run's scene, and begins to write its files.
  std::shared_ptr<Pending> EndSceneRecording(const RecordRun& action);
  // Their tapes are those of the next scenes soon.
  void EndRecordingsOfEndedScenes();
  void EndBrokenRecordings();

  struct RecordedScene {
    std::shared_ptr<RunFeed> feed;  // for its polls
    std::shared_ptr<SceneWatch> scene;
    std::shared_ptr<std::vector<uint32_t>> envs;  // also without a browser
    int64_t since_ns = 0;
    std::string path;  // without an ending

    // Returns the work that writes the files of what was recorded so far.
    std::function<absl::StatusOr<std::string>()> Saving(
        const std::string& run) const;
  };

  const Options options_;
  RunList run_list_;
  std::optional<int64_t> scanned_ns_;
  std::string runs_json_ = "[]";
  uint64_t runs_version_ = 1;
  WorkThread scene_thread_;
  std::map<std::string, std::weak_ptr<RunFeed>> feeds_;
  // A recording goes on without a browser.
  std::map<std::string, std::shared_ptr<RunFeed>> recorded_;
  std::map<std::string, RecordedScene> recorded_scenes_;  // by run
  AsyncEngineControl engines_{"tandem-view"};
  // Only of daemon_'s thread of questions.
  const std::shared_ptr<RunCurvesCache> curves_ =
      std::make_shared<RunCurvesCache>();
  const std::unique_ptr<AsyncDaemonClient> daemon_;  // nullptr: no daemon
  std::shared_ptr<const AsyncDaemonClient::List> daemon_list_;
  std::shared_ptr<const DaemonTexts> daemon_texts_;  // of daemon_list_
  RecordingEnds ends_;
};

}  // namespace tandem

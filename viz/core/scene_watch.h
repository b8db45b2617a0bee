// SceneWatch: watches one engine's live scene, for all that show it. It makes
// the engine publish, attaches, and returns each new snapshot once.
//
// Data flow: the viewers' environments -> SceneStream -> the engine's segment
// -> Poll -> the model as GLB, the newest snapshot, and those of the last ten
// minutes. The engine's training does not wait for it.
// Ownership: the views of all browsers share it; one thread. With the last view
// it ends, and the engine publishes no more.
//
//   state      meaning                              goes on looking
//   kWaiting   nothing was found yet                yes
//   kLive      a scene is attached                  yes
//   kLost      it was live: the engine is gone, or  yes
//              makes another model
//   kNone      the engine has no scene              no
//   kFailed    the scene cannot be shown, or the    after a pause, or if there
//              engine refuses                       is another scene

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schema/layout/scene.h"
#include "transport/attached_scene.h"
#include "transport/frame_geometry.h"
#include "transport/pose_snapshot.h"
#include "viz/core/background.h"
#include "viz/core/freshness.h"
#include "viz/core/sample_history.h"
#include "viz/core/scene_stream.h"
#include "viz/core/tape.h"

namespace tandem {

struct KeptPoses {
  int64_t at_ns = 0;    // CLOCK_MONOTONIC of the poll that found it
  uint64_t number = 0;  // from 1, of the watch
  PoseSnapshot snapshot;

  size_t bytes() const { return snapshot.bytes().size(); }
};

class SceneWatch {
 public:
  // Larger ones are not shown: a browser would not answer for minutes.
  static constexpr uint64_t kMostGlbBytes = uint64_t{64} << 20;
  static constexpr TapeLimits kTape = {.span_ns = 600'000'000'000,
                                       .least_gap_ns = 0,
                                       .bytes = size_t{64} << 20,
                                       .thins = true};

  enum class State { kWaiting, kLive, kLost, kNone, kFailed };

  // `thread` attaches, which blocks; it must outlive the watch.
  SceneWatch(std::string region, WorkThread* thread,
             SceneStream::Opener open = SceneStream::Open)
      : region_(std::move(region)), thread_(thread), open_(std::move(open)) {}

  // Returns the environments that a viewer wants, for it to change; {}: the
  // first ones, also in place of those that the engine does not have. Counts as
  // long as the viewer has it.
  std::shared_ptr<std::vector<uint32_t>> Join();

  // Attaches if necessary, and takes the newest snapshot. Returns whether
  // newest() is a new one. Does not wait.
  bool Poll(int64_t now_ns);

  State state() const { return state_; }
  // "waiting", "live", "lost", "none", "failed".
  absl::string_view StateName() const;
  // Why the state is not kLive, for display; "": kLive.
  const std::string& reason() const { return reason_; }

  // The attached scene's, also after its end. A number that no other model of
  // this machine has had since its start; 0: none yet.
  int64_t model() const { return model_; }
  const SceneHeader& header() const { return header_; }
  const std::shared_ptr<const std::string>& glb() const { return glb_; }

  // Of the model; nullptr: none yet.
  const std::shared_ptr<const KeptPoses>& newest() const { return newest_; }
  const Tape<KeptPoses>& tape() const { return tape_; }
  void ShareTapeWith(size_t tapes) { tape_.ShareWith(tapes); }
  const Freshness& freshness() const { return freshness_; }
  double SnapshotsPerSecondAt(int64_t now_ns) const {
    return rate_.PerSecondAt(now_ns);
  }
  // Of the published environments: the mean of their rewards; returns and
  // lengths of the episodes that have ended.
  const FrameMetrics& metrics() const { return metrics_; }
  const RunHistories& histories() const { return histories_; }

 private:
  struct Opening;

  bool OpenStream(int64_t now_ns);
  bool AskEngine();
  bool Attach(int64_t now_ns);
  void SetState(State state, absl::string_view reason);
  // Of a stream; a state of no return for an engine without a scene.
  void LoseStream(const absl::Status& why);
  void LoseScene(absl::string_view reason);
  void Count(const PoseSnapshot& snapshot, int64_t now_ns);

  const std::string region_;
  WorkThread* const thread_;
  const SceneStream::Opener open_;
  std::list<std::weak_ptr<std::vector<uint32_t>>> viewers_;
  State state_ = State::kWaiting;
  std::string reason_ = "not searched yet";
  int64_t next_try_ns_ = 0;
  std::shared_ptr<Opening> opening_;  // on thread_
  std::unique_ptr<SceneStream> stream_;
  std::optional<std::vector<uint32_t>> asked_;  // of stream_
  bool published_ = false;                      // by stream_'s engine
  std::optional<AttachedScene> scene_;
  int64_t model_ = 0;
  SceneHeader header_ = {};
  std::shared_ptr<const std::string> glb_;
  PoseSnapshot next_;
  std::shared_ptr<const KeptPoses> newest_;
  Tape<KeptPoses> tape_{kTape};
  uint64_t snapshots_ = 0;
  int64_t polled_ns_ = 0;
  Freshness freshness_;
  FrameRate rate_;
  FrameMetrics metrics_;
  RunHistories histories_;
  std::map<uint32_t, SceneRow> rows_;  // the last ones, by environment
  SnapshotHead counted_ = {};          // for the step rate
};

}  // namespace tandem

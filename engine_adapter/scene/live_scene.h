// LiveScene: publishes an engine's scene while viewers watch it.
//
// Data flow: Watch -> a scene thread; exchange -> Count; the thread asks ->
// Serve copies poses -> the segment `tandem.scene.{region}` -> readers. The
// last watcher leaves -> no thread, no segment.
// Ownership: EngineHost owns it; the stepping thread calls it. LiveSceneService
// makes watchers of streams.

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/frames/run_statistics.h"
#include "engine_adapter/scene_source.h"

namespace tandem {

class SceneThread;

// All methods are for the stepping thread; none blocks, except where one says
// so.
class LiveScene {
 public:
  struct Links {
    std::function<std::string()> name;  // the region's
    double hz = kMaxSceneHz;
    std::function<void()> wake_step_thread;  // it calls Serve then
    // Whether a client computes the rewards itself; then returns are unknown.
    std::function<bool()> has_own_rewards;
    std::function<void(bool watched)> watched;  // called after each change
    double step_secs = 0;                       // as Engine::step_secs
  };

  // What viewers can attach to; `generation` 0: nothing yet.
  struct Publication {
    std::string segment;
    uint32_t generation = 0;
    std::vector<uint32_t> envs;  // ascending
    absl::Status status;         // an error: why there is no segment
    friend bool operator==(const Publication&, const Publication&) = default;
  };

  // `source` must outlive this object; nullptr: the engine has no scene.
  // `has_rewards`: as RunStatistics has it.
  LiveScene(SceneSource* source, uint32_t num_envs, bool has_rewards,
            Links links);
  // Blocks until the scene thread has ended, after its work of the moment.
  ~LiveScene();
  LiveScene(const LiveScene&) = delete;
  LiveScene& operator=(const LiveScene&) = delete;

  // Whether an engine has a scene, and viewers may watch it.
  bool IsOffered() const { return source_ != nullptr && links_.hz > 0; }
  uint32_t num_envs() const { return num_envs_; }

  // Publishes the environments from now on, until the result is destroyed. Each
  // is below num_envs. `hz`: snapshots a second; 0 or more than Links::hz: that
  // one. The first watcher starts the thread; blocks while that of an earlier
  // watcher still ends. Only legal if IsOffered.
  using Watcher = std::shared_ptr<const void>;
  Watcher Watch(std::vector<uint32_t> envs, double hz);
  bool IsWatched() const { return !watches_.empty(); }

  // Of the newest segment. Valid until the next call.
  const Publication& Published() const { return published_; }

  // The rest is legal only while IsWatched.

  // Counts an exchange's results.
  void Count(const CountedExchange& exchange);
  // In place of Count, for an owner whose source writes all of a row.
  void NoteNews() { ++news_; }
  // The host calls this after a reset of all environments for another client.
  void ClearClientState();
  // Whether the scene thread waits for Serve, and of which environments.
  bool IsAsked() const;
  std::span<const uint32_t> envs() const;
  // Copies the poses if the scene thread waits for them. `exchange` is the
  // number of the last one.
  void Serve(uint64_t exchange);

 private:
  struct Selection {
    std::vector<uint32_t> envs;
    double hz;
  };

  void Reselect();
  void Leave(std::list<Selection>::iterator watch);
  void PublishThoseThatFit();
  void Copy(uint64_t exchange, uint32_t nodes, PoseSnapshot* into);

  SceneSource* const source_;
  const uint32_t num_envs_;
  const bool has_rewards_;
  const Links links_;
  std::list<Selection> watches_;
  Selection wanted_;   // the union of watches_
  uint64_t news_ = 0;  // changes of what a snapshot shows
  uint32_t generation_ = 0;
  uint64_t version_ = 0;   // of generation_
  uint32_t max_rows_ = 0;  // of the newest segment; 0: none
  Publication published_;
  std::unique_ptr<RunStatistics> statistics_;
  std::unique_ptr<SceneThread> thread_;  // after the last watcher: it ends
};

}  // namespace tandem

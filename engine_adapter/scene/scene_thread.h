// SceneThread: makes a scene's segments and publishes snapshots, in parallel
// with an engine's steps.
//
// Data flow: the thread asks -> the stepping thread fills copies() -> a
// segment, or a snapshot in its ring -> made() for the stepping thread.
// Ownership: LiveScene owns it. Copies and made belong to the thread of turn.
//
//   SceneThread thread("demo", num_envs, wake);
//   thread.turn().Give([&] { Learn(thread.made()); Fill(&thread.copies()); });
//   thread.Stop();  // and the destructor waits for its end

#ifndef TANDEM_ENGINE_ADAPTER_SCENE_SCENE_THREAD_H_
#define TANDEM_ENGINE_ADAPTER_SCENE_SCENE_THREAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "engine_adapter/frames/copy_turn.h"
#include "engine_adapter/frames/frame_pace.h"
#include "engine_adapter/scene_source.h"
#include "transport/owned_scene_segment.h"
#include "transport/pose_snapshot.h"

namespace tandem {

// The thread asks for copies at a rate, after news; without news once a second,
// so that viewers see that the engine lives. It runs in the background of the
// steps, as the render thread does.
//
//   word   writer    readers  publishes             initially
//   news_  stepping  scene    no data: new results  0
class SceneThread {
 public:
  // What the stepping thread gives.
  struct Copies {
    double hz = 0;            // snapshots a second
    uint32_t generation = 0;  // of `make`
    SceneSource::Make make;   // not empty: make a segment first
    PoseSnapshot snapshot;    // for the segment; without rows: none
    uint64_t news = 0;
  };
  // What the thread has made; generation 0: nothing.
  struct Made {
    uint32_t generation = 0;
    uint32_t nodes = 0;
    uint32_t max_rows = 0;
    std::string segment;
    absl::Status status;  // an error: there is no segment
  };

  SceneThread(std::string name, uint32_t num_envs, std::function<void()> wake);
  // Stops, and blocks until the thread has ended.
  ~SceneThread();
  SceneThread(const SceneThread&) = delete;
  SceneThread& operator=(const SceneThread&) = delete;

  // The stepping thread calls these.
  CopyTurn& turn() { return turn_; }
  Copies& copies() { return copies_; }
  const Made& made() const { return made_; }
  void TellNews(uint64_t news) {
    // relaxed: the thread only compares it, and then waits for the copies.
    news_.store(news, std::memory_order_relaxed);
  }
  // The thread ends after its work of the moment, and removes the segment. Does
  // not wait.
  void Stop() { turn_.Stop(); }

 private:
  void Run();
  void MakeSegment();
  void AwaitNews();

  const std::string name_;
  const uint32_t num_envs_;
  const std::function<void()> wake_;
  Copies copies_;
  Made made_;
  CopyTurn turn_;
  std::atomic<uint64_t> news_{0};

  // Used by the thread.
  alignas(128) std::optional<OwnedSceneSegment> segment_;
  std::optional<FramePace> pace_;
  double hz_ = 0;  // of pace_

  std::thread thread_;  // last: uses all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SCENE_SCENE_THREAD_H_

// FrameThread: renders an engine's environments in parallel with its steps.
//
// Data flow: exchange -> Count; render thread asks -> Serve copies -> Draw -> a
// reserved slot of the frame ring -> readers; a client's request -> answer.
// Ownership: EngineHost owns it. The stepping thread calls Count,
// ClearClientState and Serve. The object owns the render thread.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/frames/copy_turn.h"
#include "engine_adapter/frames/frame_grid.h"
#include "engine_adapter/frames/run_statistics.h"
#include "transport/frame_writer.h"
#include "transport/run_snapshot.h"

namespace tandem {

// Steps never wait for images. The copies and copied_ belong to the thread of
// turn_, which the stepping thread reads once an exchange.
//
//   word        writer         readers  publishes              initially
//   counted_    stepping       render   no data: new results   0
//   env_steps_  stepping       render   no data: a statistic   0
//   wanted_     stepping       render   no data: a request     0
//
// While no viewer is attached and no client requests a frame, the render thread
// sleeps and polls every 200 ms for a viewer; no code copies, renders or loads.
// After an error or exception of the source, the frame is black and its
// metadata has "error".
class FrameThread {
 public:
  // Connections to the rest of the engine; the render thread calls them.
  struct Links {
    std::function<bool()> watched;           // whether a viewer is attached
    std::function<void()> wake_step_thread;  // it calls Serve then
    std::function<void(uint32_t)> answer;    // after the frame's publication
    std::function<void(absl::string_view)> log;
    // The stepping thread calls it when it copies: the statistics of the
    // rewards that the client computes itself. nullopt: the engine's hold.
    std::function<std::optional<RunSnapshot>()> own_run;
  };

  // `source` was prepared with `options`, and must outlive this object.
  // `has_rewards`: as RunStatistics has it.
  FrameThread(FrameSource* source, const FrameOptions& options,
              uint32_t num_envs, bool has_rewards, FrameWriter writer,
              Links links);
  // Ends the render thread, and marks the frame ring as ended. The stepping
  // thread must have ended its calls.
  ~FrameThread();
  FrameThread(const FrameThread&) = delete;
  FrameThread& operator=(const FrameThread&) = delete;

  // The number of metadata bytes that the ring needs for such frames.
  static uint32_t MetadataBytes(const FrameOptions& options);

  // Counts an exchange's results.
  void Count(const CountedExchange& exchange);
  // The host calls this after a reset of all environments for another client.
  void ClearClientState();
  // Copies the environments if the render thread waits for a copy, and passes
  // on the client's newest request. `step` is the number of the last exchange.
  // Makes a system call only if the render thread sleeps and has work.
  void Serve(uint64_t step, uint32_t request);

 private:
  // Values that belong to the copies.
  struct Copied {
    uint64_t step = 0;
    uint32_t request = 0;
    uint64_t counted = 0;
    RunSnapshot run;
    absl::Status status;  // the status of the copy
  };

  void Run();
  void DrawFrame();
  absl::Status DrawTiles(std::span<std::byte> frame);
  std::string Metadata(const absl::Status& drawn) const;
  void UpdateRate(int64_t now_ns);

  FrameSource* const source_;
  const FrameOptions options_;
  const FrameGrid grid_;
  const Links links_;

  // Used by the stepping thread.
  RunStatistics statistics_;
  uint64_t counted_by_steps_ = 0;

  Copied copied_;
  CopyTurn turn_;
  std::atomic<uint64_t> counted_{0};
  std::atomic<uint64_t> env_steps_{0};
  std::atomic<uint32_t> wanted_{0};

  // Used by the render thread.
  alignas(128) FrameWriter writer_;
  bool started_ = false;
  absl::Status start_;      // the status of FrameSource::Start
  std::string last_error_;  // to log equal errors once
  uint32_t answered_ = 0;
  uint64_t drawn_count_ = 0;  // counted_ of the last frame
  int64_t drawn_at_ns_ = 0;
  double step_rate_hz_ = 0;
  int64_t rate_since_ns_ = 0;
  uint64_t rate_from_steps_ = 0;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace tandem

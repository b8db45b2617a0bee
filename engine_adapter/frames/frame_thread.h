// FrameThread: draws an engine's environments beside its steps.
//
// Data flow: exchange -> Count; render thread asks -> Serve copies -> Draw ->
// a loaned slot of the frame ring -> readers; a client's request -> answer.
// Ownership: EngineHost's. The thread that steps calls Count, ClearClientState
// and Serve; the render thread is this class's own.
//
//   FrameThread frames(source, options, num_envs, std::move(writer), links);
//   frames.Count(exchange);                       // results are complete
//   frames.Serve(side.frame_seq(), side.frame_request());  // and published

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_THREAD_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_THREAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frames/frame_grid.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/frames/run_statistics.h"
#include "schema/layout/shared_word.h"
#include "transport/frames/frame_writer.h"
#include "transport/wait/doorbell.h"

namespace tandem {

// Steps never wait for images: the copies belong to one thread at a time,
// which hands them over by a word, and the one that steps reads that word
// once an exchange.
//
//  word        writer      readers  publishes                    initially
//  turn_       who has it  both     the copies, and copied_      kRender
//  counted_    steps       render   nothing: that there is news  0
//  env_steps_  steps       render   nothing: a statistic         0
//  wanted_     steps       render   nothing: a request's number  0
//  stop_       the owner   render   nothing                      0
//
// While no viewer is attached and no client asks, the render thread sleeps and
// asks every 200 ms whether a viewer is attached; nothing is copied, drawn or
// loaded. Copying or drawing that fails, or throws, gives a black frame whose
// metadata has "error".
class FrameThread {
 public:
  // How it speaks to the rest of the engine; called by the render thread.
  struct Links {
    std::function<bool()> watched;           // is a viewer attached?
    std::function<void()> wake_step_thread;  // make the other thread call Serve
    std::function<void(uint32_t)> answer;    // the request's frame is published
    std::function<void(absl::string_view)> log;
  };

  // `source` was prepared with `options`, and outlives this.
  FrameThread(FrameSource* source, const FrameOptions& options,
              uint32_t num_envs, FrameWriter writer, Links links);
  // Ends the render thread; says in the ring that its frames are over. The
  // thread that steps calls nothing any more.
  ~FrameThread();
  FrameThread(const FrameThread&) = delete;
  FrameThread& operator=(const FrameThread&) = delete;

  // The ring's metadata room that such frames need.
  static uint32_t MetadataBytes(const FrameOptions& options);

  // Counts an exchange's results.
  void Count(const CountedExchange& exchange);
  // All environments were reset for another client.
  void ClearClientState();
  // Copies the environments if the render thread waits for that; passes on
  // which frame a client asked for last. `step` is the last exchange's number.
  // A system call only if the render thread sleeps and has something to do.
  void Serve(uint64_t step, uint32_t request);

 private:
  enum Turn : uint32_t { kRender, kSteps };

  // What goes with the copies.
  struct Copied {
    uint64_t step = 0;
    uint32_t request = 0;
    uint64_t counted = 0;
    RunSnapshot run;
    absl::Status status;  // of the copying
  };

  void Run();
  bool Stopping() const;
  void SleepUntil(int64_t at_ns);
  bool AwaitCopies();
  void DrawFrame();
  absl::Status DrawTiles(std::span<std::byte> frame);
  std::string Metadata(const absl::Status& drawn) const;
  void UpdateRate(int64_t now_ns);

  FrameSource* const source_;
  const FrameOptions options_;
  const FrameGrid grid_;
  const Links links_;

  // The thread that steps.
  RunStatistics statistics_;
  uint64_t counted_by_steps_ = 0;

  // Whose turn it is.
  Copied copied_;
  alignas(128) std::atomic<uint32_t> turn_{kRender};
  std::atomic<uint64_t> counted_{0};
  std::atomic<uint64_t> env_steps_{0};
  std::atomic<uint32_t> wanted_{0};
  std::atomic<uint32_t> stop_{0};
  SharedWord<uint32_t> bell_word_{};
  SharedWord<uint32_t> sleepers_word_{};
  Doorbell bell_{&bell_word_, &sleepers_word_};  // the render thread's

  // The render thread.
  alignas(128) FrameWriter writer_;
  bool started_ = false;
  absl::Status start_;      // what FrameSource::Start said
  std::string last_error_;  // logged once for any number of equal ones
  uint32_t answered_ = 0;
  uint64_t drawn_count_ = 0;  // counted_ when last drawn
  int64_t drawn_at_ns_ = 0;
  double step_rate_hz_ = 0;
  int64_t rate_since_ns_ = 0;
  uint64_t rate_from_steps_ = 0;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_THREAD_H_

// FrameWatch: one run, watched: attached to whenever it can be, each new frame
// once, and whether the newest frame may be called live. FrameMetadata: the
// JSON beside a frame.
//
// Data flow: a run's name -> its ring (a region's or a segment's) -> Poll, as
// often as the display wants -> the newest frame, its state and age, and the
// course of its numbers. It only reads; the writer never waits for it.
// Ownership: one tab; one thread.
//
//   FrameWatch watch("tandem");
//   if (watch.Poll(MonotonicNanos())) Show(watch.frame());
//   if (watch.StateAt(MonotonicNanos()) != FreshnessState::kConnected) Dim();
//
// Poll at least every 50 ms: the state is right within 450 ms then, whatever
// became of the writer (Freshness::kMaxLiveAgeNs).

#ifndef TANDEM_VIZ_CORE_FRAME_WATCH_H_
#define TANDEM_VIZ_CORE_FRAME_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/frames/attached_frames.h"
#include "transport/frames/frame_reader.h"
#include "viz/core/freshness.h"
#include "viz/core/sample_history.h"

namespace tandem {

// Greater numbers, of either sign, are left out: a double does not hold all of
// them, so that no writer in JSON can mean them; and sums of such do not
// overflow.
inline constexpr int64_t kMaxMetadataInteger = int64_t{1} << 53;

struct FrameMetadata {
  std::optional<int64_t> step;
  std::vector<int64_t> envs;  // environments in the tiles, in order
  // Episodes ended since the run began: a running count, so that the viewer
  // misses none however many frames it drops.
  std::optional<int64_t> episodes;
  // Why the image is not what it should be: drawing failed. At most 512
  // bytes; empty: all is well.
  std::string error;
};

// Texts over 64 KiB, and lists of over 4096 environments, are left out.
FrameMetadata ParseFrameMetadata(absl::string_view json);

class FrameWatch {
 public:
  // A run id, or a region's name; of two by one name that serve frames the
  // segment is taken.
  // Nothing need be there yet.
  explicit FrameWatch(std::string run);

  // Attaches if need be (tried every 100 ms), takes the newest frame, and asks
  // after the writer. True: frame() is one that was not delivered before. Makes
  // a few system calls; does not wait; allocates when a frame's size changes.
  bool Poll(int64_t now_ns);

  // Gives the ring back, so that the writer knows that no viewer is attached;
  // the next Poll attaches again.
  void Detach();

  const std::string& run() const { return run_; }
  // The newest frame, also when its writer is gone; number 0: none yet.
  const Frame& frame() const { return frame_; }
  const FrameMetadata& metadata() const { return metadata_; }

  FreshnessState StateAt(int64_t now_ns) const {
    return freshness_.StateAt(now_ns);
  }
  const Freshness& freshness() const { return freshness_; }
  // Why there is no link, for people; empty while there is one.
  const std::string& reason() const { return reason_; }

  uint64_t frames() const { return frames_seen_; }  // delivered
  // Of them: published while we were attached, not found on attaching.
  uint64_t new_frames() const { return new_frames_; }
  // Published, but passed between two polls.
  uint64_t dropped() const { return dropped_; }
  double FramesPerSecondAt(int64_t now_ns) const {
    return rate_.PerSecondAt(now_ns);
  }
  // Since the run began, by the writer's own count, over its restarts; nothing
  // from a writer that does not count.
  std::optional<int64_t> episodes() const;

  const SampleHistory& rewards() const { return rewards_; }
  const SampleHistory& returns() const { return returns_; }
  const SampleHistory& step_rates() const { return step_rates_; }

 private:
  bool Attach(int64_t now_ns);
  void Lose(absl::string_view reason);
  void TakeFrame(int64_t now_ns, bool found_on_attaching, int64_t since_ns);
  void CountEpisodes();

  std::string run_;
  std::optional<AttachedFrames> attached_;
  bool was_attached_ = false;  // at any time
  int64_t next_attach_ns_ = 0;
  std::optional<int64_t> polled_ns_;
  Frame frame_;
  Frame next_frame_;
  FrameMetadata metadata_;
  Freshness freshness_;
  std::string reason_;
  uint64_t frames_seen_ = 0;
  uint64_t new_frames_ = 0;
  uint64_t dropped_ = 0;
  uint64_t dropped_before_ = 0;          // from rings that are no more
  std::optional<int64_t> episodes_now_;  // as the writer counts
  int64_t episodes_before_ = 0;          // of writers that are no more
  FrameRate rate_;
  SampleHistory rewards_;
  SampleHistory returns_;
  SampleHistory step_rates_;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_FRAME_WATCH_H_

// FrameWatch: watches one run. It attaches when possible, returns each new
// frame once, and reports whether the newest frame is live. FrameMetadata: the
// JSON of a frame.
//
// Data flow: a run's name -> its ring (in a region or a segment) -> Poll, at
// the display's rate -> the newest frame, its state and age, and the history of
// its numbers. It only reads; the writer never waits for it.
// Ownership: one tab; one thread.
//
// The caller must call Poll at least every 50 ms. Then the state is correct
// within 450 ms of any change of the writer (Freshness::kMaxLiveAgeNs).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/images/image_grid.h"
#include "transport/attached_frames.h"
#include "transport/frame_reader.h"
#include "viz/core/freshness.h"
#include "viz/core/sample_history.h"

namespace tandem {

// Integers of greater magnitude are ignored: a double cannot represent all of
// them. The limit also prevents overflow of sums.
inline constexpr int64_t kMaxMetadataInteger = int64_t{1} << 53;

struct FrameMetadata {
  std::optional<int64_t> step;
  std::vector<int64_t> envs;  // environments in the tiles, in order
  // Of the image. One tile if the writer names no grid that holds `envs`.
  ImageGrid grid;
  uint32_t tiles = 1;
  // The number of episodes ended since the run began. It is cumulative, so
  // dropped frames lose no episodes.
  std::optional<int64_t> episodes;
  std::optional<double> episode_length;  // mean of the last ones, in steps
  std::string error;  // the rendering error, at most 512 bytes; "": none
};

// Ignores texts over 64 KiB, and lists of over 4096 environments.
FrameMetadata ParseFrameMetadata(absl::string_view json);

class FrameWatch {
 public:
  // Larger frames are not shown: a front end copies each in its one thread.
  // 8192 x 8192 RGBA.
  static constexpr uint64_t kMostFrameBytes = uint64_t{256} << 20;

  // `run`: a run id, or a region's name. If both exist and have frames, the
  // segment is used. Neither must exist yet.
  explicit FrameWatch(std::string run);

  // Attaches if necessary (one attempt every 100 ms), takes the newest frame,
  // and checks the writer. Returns whether frame() is a new one. Makes a few
  // system calls; does not wait; allocates if a frame's size changes.
  bool Poll(int64_t now_ns);

  // Detaches; the writer then sees no viewer. The next Poll attaches again.
  void Detach();

  // The newest frame, also after its writer has ended; number 0: none yet.
  const Frame& frame() const { return frame_; }
  const FrameMetadata& metadata() const { return metadata_; }

  FreshnessState StateAt(int64_t now_ns) const {
    return freshness_.StateAt(now_ns);
  }
  const Freshness& freshness() const { return freshness_; }
  // The reason of a missing link, for display; empty while there is a link.
  const std::string& reason() const { return reason_; }

  uint64_t frames() const { return frames_seen_; }  // delivered
  // The number of those that were published while attached.
  uint64_t new_frames() const { return new_frames_; }
  // The number of frames skipped between two polls.
  uint64_t dropped() const { return dropped_; }
  double FramesPerSecondAt(int64_t now_ns) const {
    return rate_.PerSecondAt(now_ns);
  }
  // Episodes since the run began, by the writer's count, including its
  // restarts; nullopt if the writer does not count.
  std::optional<int64_t> episodes() const;

  // Lengths are empty until the writer reports an ended episode.
  const RunHistories& histories() const { return histories_; }

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
  uint64_t dropped_before_ = 0;          // from earlier rings
  std::optional<int64_t> episodes_now_;  // the writer's count
  int64_t episodes_before_ = 0;          // the counts of earlier writers
  FrameRate rate_;
  RunHistories histories_;
};

}  // namespace tandem

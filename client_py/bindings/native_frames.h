// NativeFrameWriter, NativeFrameReader: Python's interface of a frame segment.
// EpisodeReturns: rewards, returns and episodes of a vector environment, for
// viewers.
//
// Data flow: bytes, memoryview or NumPy array -> checked -> the ring;
// the ring -> one copy -> bytes.
// Ownership: tandem.fastlane.FastLaneWriter and FastLaneReader hold one each.
// All calls need the GIL. A writer's constructor releases it: to reserve
// gigabytes takes seconds. Other calls keep it: a Close in another thread would
// unmap the frame during its copy.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/attached_frames.h"
#include "transport/owned_frame_segment.h"

namespace tandem {

// Raises by the error table. After Close, the calls that are not const raise
// ClientClosed; in a forked child they raise ForkedChild. Close stays legal.
class NativeFrameWriter {
 public:
  NativeFrameWriter(const std::string& run_id, uint32_t width, uint32_t height,
                    uint32_t channels, uint32_t capacity,
                    uint32_t metadata_size);

  // `frame`: a buffer of bytes with any layout. It has one dimension and at
  // most a frame's length, or the segment's height, width and channels.
  // `metadata`: bytes or None. One second after the start and later, Publish
  // also calls HasReader, which restores the segment's name.
  uint64_t Publish(pybind11::handle frame, double last_reward,
                   double rolling_return, double step_rate_hz,
                   pybind11::handle metadata);
  bool HasReader();
  void Invalidate();
  // Invalidates and unlinks. A second call has no effect.
  void Close() { segment_.reset(); }

  bool closed() const { return !segment_.has_value(); }
  uint64_t head() const { return head_; }

 private:
  OwnedFrameSegment& Segment();

  std::string run_id_;
  std::optional<OwnedFrameSegment> segment_;
  uint64_t head_ = 0;
  int64_t made_ns_ = MonotonicNanos();
};

// As NativeFrameWriter, but legal in a forked child. A frame is (number, bytes,
// last_reward, rolling_return, step_rate_hz, metadata as bytes or None).
class NativeFrameReader {
 public:
  explicit NativeFrameReader(const std::string& run_id);

  // Return a frame, or None. BrokenPeer: the segment's content is invalid.
  pybind11::object Newest();
  pybind11::object Next();
  pybind11::tuple Metrics();  // last_reward, rolling_return, step_rate_hz
  bool Invalidated();
  bool Replaced();
  // Returns True or False; None if the writer holds no lock, or in a forked
  // child.
  std::optional<bool> WriterAlive();
  // Width, height, channels, capacity, metadata room.
  pybind11::tuple Geometry();
  void Close() { frames_.reset(); }
  bool closed() const { return !frames_.has_value(); }
  uint64_t dropped() const { return dropped_; }

 private:
  AttachedFrames& Frames();
  pybind11::object Read(bool once);

  std::string run_id_;
  std::optional<AttachedFrames> frames_;
  uint64_t dropped_ = 0;  // as of the newest frame
};

// The mean return and length of the last `window` episodes of a vector
// environment. Before the first episode has ended, the return is the mean of
// the current episodes.
class EpisodeReturns {
 public:
  // `only`: the index of the only counted environment; -1: all count.
  // `resets_next`: the step after an episode's end resets the environment, and
  // is no step of an episode (NEXT_STEP).
  EpisodeReturns(size_t num_envs, int64_t only, size_t window,
                 bool resets_next);

  // Adds a step's results: arrays of numbers and flags, with one element for
  // each environment. InvalidArgument: other arrays. Copies arrays whose type
  // is not float64 or bool.
  void Add(pybind11::handle rewards, pybind11::handle terminations,
           pybind11::handle truncations);
  // Ends all episodes, or those of the mask (flags, or None).
  void Reset(pybind11::handle mask);
  // The last step's reward: of the only environment, or the mean of all.
  double last_reward() const { return last_reward_; }
  double RollingReturn() const;
  // In steps; nullopt: no episode has ended.
  std::optional<double> RollingLength() const;
  uint64_t episodes() const { return episodes_; }  // ended

 private:
  struct Episode {
    double sum = 0;  // of its rewards
    uint64_t steps = 0;
  };

  size_t first_;
  size_t end_;
  size_t window_;
  bool resets_next_;
  std::vector<Episode> running_;
  std::vector<uint8_t> over_;  // 1: the next step is a reset
  std::deque<Episode> ended_;
  uint64_t episodes_ = 0;
  double last_reward_ = 0;
};

}  // namespace tandem

// Freshness: whether the image on screen is live, and its age. FrameRate: the
// number of new frames a second.
//
// Data flow: FrameWatch sets the state of the link and reports new frames; a
// view reads the state when it draws.
// Ownership: one FrameWatch. The caller passes the times: no clock, no system
// call, no allocation.
//
// The state for each link and frame:
//
//   link          newest frame                          state
//   kNoRun        any                                   kUnavailable
//   kLost         any                                   kReconnecting
//   kAttached     new since the attach, young enough    kConnected
//   kAttached     none, from before, or too old         kStale

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tandem {

// MOSAIC's three states, and kStale: a link without new frames.
enum class FreshnessState { kConnected, kStale, kReconnecting, kUnavailable };

// "connected", "stale", "reconnecting", "fastlane-unavailable".
absl::string_view FreshnessName(FreshnessState state);

class Freshness {
 public:
  enum class Link {
    kNoRun,     // no region or segment has the name
    kLost,      // exists, or existed, without frames now
    kAttached,  // a ring is mapped and its writer is not known to be gone
  };

  // The maximum age of a live image. Three frames a second, polled every 16 ms,
  // stay live: their age is at most 333 ms plus two polls. With polls every 50
  // ms and 50 ms for drawing, the screen shows the correct state 500 ms after
  // the writer's last frame.
  static constexpr int64_t kMaxLiveAgeNs = 400'000'000;

  void SetLink(Link link) { link_ = link; }

  // A frame was in the ring at the attach, at `now_ns`; its age is unknown.
  void SawOldFrame(int64_t now_ns);
  // A frame was published after `since_ns`, the time of the last poll.
  void SawNewFrame(int64_t since_ns);

  FreshnessState StateAt(int64_t now_ns) const;

  // The maximum age of the newest frame; if `AgeIsAtLeast`, the minimum age.
  // nullopt if there was none yet.
  std::optional<int64_t> AgeNsAt(int64_t now_ns) const;
  bool AgeIsAtLeast() const { return seen_ns_.has_value() && !new_; }

 private:
  Link link_ = Link::kNoRun;
  std::optional<int64_t> seen_ns_;
  bool new_ = false;  // the frame was published while we polled
};

// Frames per second, over about one second.
class FrameRate {
 public:
  void Add(int64_t now_ns) {
    times_[next_] = now_ns;
    next_ = (next_ + 1) % kTimes;
    count_ = std::min(count_ + 1, kTimes);
  }

  // The rate over the last second, or over the last two frames if their
  // distance is greater. It falls when a frame is overdue. It is 0 if the last
  // frame is older than two seconds and than twice that distance.
  double PerSecondAt(int64_t now_ns) const {
    if (count_ < 2) return 0;
    const int64_t newest = Back(1);
    const int64_t gap = newest - Back(2);
    if (now_ns - newest > 2 * std::max(kSecond, gap)) return 0;
    size_t frames = 1;
    while (frames + 1 < count_ && now_ns - Back(frames + 2) <= kSecond) {
      ++frames;
    }
    const int64_t first = Back(frames + 1);
    // Time beyond the usual distance counts.
    const int64_t usual = (newest - first) / static_cast<int64_t>(frames);
    const int64_t span = std::max(newest, now_ns - usual) - first;
    return span > 0 ? static_cast<double>(frames) * kSecond /
                          static_cast<double>(span)
                    : 0;
  }

 private:
  static constexpr int64_t kSecond = 1'000'000'000;
  static constexpr size_t kTimes = 256;  // displays of up to 255 Hz

  int64_t Back(size_t steps) const {
    return times_[(next_ + kTimes - steps) % kTimes];
  }

  std::array<int64_t, kTimes> times_ = {};
  size_t next_ = 0;
  size_t count_ = 0;
};

}  // namespace tandem

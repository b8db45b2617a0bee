// Freshness: whether the image on screen may be called live, and how old it is.
// FrameRate: how many new ones come in a second.
//
// Data flow: FrameWatch sets the state of the link and reports when a frame was
// new; a view asks for the state at the moment it draws.
// Ownership: one FrameWatch. Plain arithmetic on times that are handed in: no
// clock, no system call, no allocation.
//
//   Freshness freshness;
//   freshness.SetLink(Link::kAttached, now);
//   freshness.SawOldFrame(now);              // it was there when we came
//   freshness.SawNewFrame(previous_poll);    // published after that poll
//   freshness.StateAt(now);                  // kConnected
//
// What state follows from what:
//
//   link          newest frame                          state
//   kNoRun        any                                   kUnavailable
//   kLost         any                                   kReconnecting
//   kAttached     new since we attached, young enough   kConnected
//   kAttached     none, from before, or too old         kStale

#ifndef TANDEM_VIZ_CORE_FRESHNESS_H_
#define TANDEM_VIZ_CORE_FRESHNESS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tandem {

// The seed's three states, and one for a link that brings no news.
enum class FreshnessState { kConnected, kStale, kReconnecting, kUnavailable };

// "connected", "stale", "reconnecting", "fastlane-unavailable".
absl::string_view FreshnessName(FreshnessState state);

class Freshness {
 public:
  enum class Link {
    kNoRun,     // nothing of that name is there
    kLost,      // something is there, or was, that does not serve frames now
    kAttached,  // a ring is mapped and its writer is not known to be gone
  };

  // An image older than this is never called live. Three frames a second, seen
  // by polls 16 ms apart, are live throughout: between two of them an age comes
  // to 333 ms and two polls. And with polls at most 50 ms apart a view has 50
  // ms left to draw, for what is on screen to be right within 500 ms of the
  // writer's last frame.
  static constexpr int64_t kMaxLiveAgeNs = 400'000'000;

  void SetLink(Link link) { link_ = link; }

  // A frame was in the ring when we attached, at `now_ns`; its age is unknown.
  void SawOldFrame(int64_t now_ns);
  // A frame was published after `since_ns`, the time of the poll before.
  void SawNewFrame(int64_t since_ns);

  FreshnessState StateAt(int64_t now_ns) const;

  // Age of the newest frame that we have: at most this (or, if `AgeIsAtLeast`,
  // at least this); nothing if there was none yet.
  std::optional<int64_t> AgeNsAt(int64_t now_ns) const;
  bool AgeIsAtLeast() const { return seen_ns_.has_value() && !new_; }

 private:
  Link link_ = Link::kNoRun;
  std::optional<int64_t> seen_ns_;
  bool new_ = false;  // the frame was published while we polled
};

// Frames per second over the last second or so; 0 some time after they stop.
class FrameRate {
 public:
  void Add(int64_t now_ns) {
    times_[next_] = now_ns;
    next_ = (next_ + 1) % kTimes;
    count_ = std::min(count_ + 1, kTimes);
  }

  // Over the last second, or over the last two frames if they are further
  // apart; falls as soon as a frame is overdue, to 0 once nothing came for two
  // seconds and twice that distance.
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
    // A silence longer than the usual distance counts.
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

#endif  // TANDEM_VIZ_CORE_FRESHNESS_H_

// Freshness: whether the picture on screen may be called live, and how old it
// is.
//
// Data flow: FrameWatch tells it what became of the link and when a frame was
// new; a view asks for the state at the moment it draws.
// Ownership: one FrameWatch. Plain arithmetic on times that are handed in: no
// clock, no system call, no allocation.
//
//   Freshness freshness;
//   freshness.SetLink(Link::kAttached, now);
//   freshness.SawOldFrame(now);              // it was there when we came
//   freshness.SawNewFrame(previous_look);    // published after that look
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

  // A picture older than this is never called live. Three frames a second, seen
  // by looks 16 ms apart, are live throughout: between two of them an age comes
  // to 333 ms and two looks. And with looks at most 50 ms apart a view has 50
  // ms left to draw, for what is on screen to be right within 500 ms of the
  // writer's last frame.
  static constexpr int64_t kMaxLiveAgeNs = 400'000'000;

  void SetLink(Link link) { link_ = link; }

  // A frame was in the ring when we attached, at `now_ns`: nobody can say how
  // long it had been there.
  void SawOldFrame(int64_t now_ns);
  // A frame was published after `since_ns`, the time of the look before.
  void SawNewFrame(int64_t since_ns);

  FreshnessState StateAt(int64_t now_ns) const;

  // Age of the newest frame that we have: at most this (or, if `AgeIsAtLeast`,
  // at least this); nothing if there was none yet.
  std::optional<int64_t> AgeNsAt(int64_t now_ns) const;
  bool AgeIsAtLeast() const { return seen_ns_.has_value() && !new_; }

 private:
  Link link_ = Link::kNoRun;
  std::optional<int64_t> seen_ns_;
  bool new_ = false;  // the frame was published while we looked
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_FRESHNESS_H_

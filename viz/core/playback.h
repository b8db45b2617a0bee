// Playback: which frame or which poses of a run a view shows: the newest
// (live), or those of an earlier time (frozen), and their age.
//
// Data flow: the user's freeze, scrub and resume -> the shown time -> a Tape.
// Ownership: one view; one thread. The caller passes the times.
//
//   state     call        next state
//   live      Freeze      frozen at the newest frame
//   live      SeekTo      frozen at the frame found
//   frozen    SeekTo      frozen at the frame found
//   frozen    Resume      live

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "viz/core/freshness.h"
#include "viz/core/tape.h"

namespace tandem {

class Playback {
 public:
  bool frozen() const { return frozen_.has_value(); }

  // No effect if frozen.
  void Freeze(int64_t now_ns, const Freshness& freshness);
  void Resume() { frozen_.reset(); }

  // Freezes at the time `before_ns` before the tape's end, within the tape.
  // Returns the entry to show; nullptr: the tape is empty, and nothing changed.
  template <typename Entry>
  std::shared_ptr<const Entry> SeekTo(int64_t before_ns, int64_t now_ns,
                                      const Tape<Entry>& tape);

  // The age of the shown frame; "over 2 s" if only its minimum is known.
  int64_t AgeNsAt(int64_t now_ns, const Freshness& freshness) const;
  std::string AgeTextAt(int64_t now_ns, const Freshness& freshness) const;

 private:
  struct Frozen {
    int64_t at_ns = 0;      // the time of the freeze, or of the frame found
    int64_t age_ns = 0;     // the frame's age at at_ns
    bool at_least = false;  // age_ns is a minimum
  };
  std::optional<Frozen> frozen_;
};

template <typename Entry>
std::shared_ptr<const Entry> Playback::SeekTo(int64_t before_ns, int64_t now_ns,
                                              const Tape<Entry>& tape) {
  if (tape.empty()) return nullptr;
  const int64_t at_ns =
      std::clamp(tape.end_ns() - before_ns, tape.begin_ns(), tape.end_ns());
  std::shared_ptr<const Entry> entry = tape.At(std::min(at_ns, now_ns));
  frozen_ = {.at_ns = at_ns, .age_ns = at_ns - entry->at_ns};
  return entry;
}

}  // namespace tandem

// RunQueue: the runs that wait for their start, by priority and age.
//
// Data flow: Add -> Start, as often as something becomes free: the caller
// starts a run, or says what the run waits for -> ForEach, for displays.
// Ownership: the RunStarter's; its thread (EventLoop) alone calls. A run must
// be removed before it is destroyed.
//
// Start visits the runs that it starts, and one more for each kind of wait: its
// time does not grow with the queue.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "slow_lane/daemon/live_run.h"

namespace tandem::slow_lane {

class RunQueue {
 public:
  // What a run needs for its start, beside its folder.
  struct Needs {
    bool room = false;  // processors or memory
    bool gpus = false;
  };
  // What a run waits for.
  enum class Wait { kNothing, kRoom, kGpus, kOther };

  // Adds a run, also in place of an earlier Add with other needs.
  void Add(LiveRun* run, const Needs& needs) {
    Remove(run);
    lanes_[LaneOf(needs)].emplace(PlaceOf(*run), run);
  }
  // No effect on a run that is not in the queue.
  void Remove(const LiveRun* run) {
    for (Lane& lane : lanes_) lane.erase(PlaceOf(*run));
  }

  // Calls `start(run)` for runs in their order. kNothing: it was started, and
  // is removed. kRoom and kGpus delay all later runs that need the same.
  // `start` may add its own run again.
  template <typename StartOne>
  void Start(StartOne start) {
    room_since_ = gpus_since_ = kEnd;
    for (Entry next = After(kBegin); next.run != nullptr;
         next = After(next.place)) {
      const Wait wait = start(next.run);
      if (wait == Wait::kNothing) Remove(next.run);
      if (wait == Wait::kRoom) room_since_ = next.place;
      if (wait == Wait::kGpus) gpus_since_ = next.place;
    }
  }

  // Calls `visit(run, wait)` for all runs in their order, with what they wait
  // for since the last Start.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (Entry next = After(kBegin, /*with_delayed=*/true); next.run != nullptr;
         next = After(next.place, /*with_delayed=*/true)) {
      visit(next.run, next.wait);
    }
  }

 private:
  // Negative priority, then the number of the submission.
  using Place = std::pair<int64_t, uint64_t>;
  using Lane = std::map<Place, LiveRun*>;  // runs with the same needs
  struct Entry {
    Place place;
    LiveRun* run = nullptr;
    Wait wait = Wait::kOther;
  };
  static constexpr Place kBegin = {std::numeric_limits<int64_t>::min(), 0};
  static constexpr Place kEnd = {std::numeric_limits<int64_t>::max(), 0};

  static Place PlaceOf(const LiveRun& run) {
    return {-int64_t{run.config.priority}, run.order};
  }
  static size_t LaneOf(const Needs& needs) {
    return (needs.room ? 1u : 0u) + (needs.gpus ? 2u : 0u);
  }

  // Returns the first run behind `place`; without a run: there is none.
  Entry After(const Place& place, bool with_delayed = false) const {
    Entry first = {.place = kEnd};
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      const auto at = lanes_[lane].upper_bound(place);
      if (at == lanes_[lane].end() || at->first > first.place) continue;
      const Wait wait =
          (lane & 1u) != 0 && at->first >= room_since_   ? Wait::kRoom
          : (lane & 2u) != 0 && at->first >= gpus_since_ ? Wait::kGpus
                                                         : Wait::kOther;
      if (with_delayed || wait == Wait::kOther) {
        first = {at->first, at->second, wait};
      }
    }
    return first;
  }

  std::array<Lane, 4> lanes_;  // by LaneOf
  // The first runs that wait for these.
  Place room_since_ = kEnd;
  Place gpus_since_ = kEnd;
};

}  // namespace tandem::slow_lane

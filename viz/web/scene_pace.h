// ScenePace: when a browser gets its next snapshot of poses.
//
// Data flow: snapshots sent and acknowledged -> how many are on the way. With
// two, one is drawn while the next one comes; a slow line gets fewer, and
// always the newest. Ownership: one view of one browser. No clock, no system
// call.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tandem {

class ScenePace {
 public:
  static constexpr size_t kMostOnTheWay = 2;

  bool MaySend() const { return on_the_way_.size() < kMostOnTheWay; }
  // `number`: greater than that of the snapshot before.
  void Sent(uint64_t number) { on_the_way_.push_back(number); }
  // The browser has this snapshot, and those sent before.
  void Posed(uint64_t number) {
    while (!on_the_way_.empty() && on_the_way_.front() <= number) {
      on_the_way_.pop_front();
    }
  }

 private:
  std::deque<uint64_t> on_the_way_;
};

}  // namespace tandem

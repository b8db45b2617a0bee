// FrameRate: frames per second over the last second or so.
//
// Data flow: the time of each new frame -> a rate that falls to 0 when they
// stop. Fixed memory.
//
//   FrameRate rate;
//   rate.Add(now_ns);
//   rate.PerSecondAt(now_ns);

#ifndef TANDEM_VIZ_CORE_FRAME_RATE_H_
#define TANDEM_VIZ_CORE_FRAME_RATE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem {

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

#endif  // TANDEM_VIZ_CORE_FRAME_RATE_H_

// PicturePace: when a browser gets its next picture, and of which quality.
//
// Data flow: pictures sent and drawn, with their times -> how many may be on
// the way, and a level of quality. A slow line thus gets fewer and smaller
// pictures instead of old ones.
// Ownership: one view of one browser. The caller passes the times: no clock, no
// system call.
//
// A picture's delay is its round trip less that of an empty message: its time
// in queues and on the line. A delay above kMostDelayNs halves the number of
// pictures on the way; if that is 1 already, the quality falls. Short delays
// raise first the number, then, after some seconds, the quality.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tandem {

struct PictureQuality {
  uint32_t divisor = 1;  // of both sides
  int jpeg = 80;         // 1 to 100
};

class PicturePace {
 public:
  static constexpr size_t kMostOnTheWay = 8;
  static constexpr size_t kLevels = 6;  // 0 is the best
  static constexpr int64_t kMostDelayNs = 250'000'000;
  static constexpr int64_t kShortDelayNs = 80'000'000;
  static constexpr int64_t kPeriodNs = 2'000'000'000;
  // The least number of pictures a second, before the quality falls for it.
  static constexpr double kLeastRate = 10;

  static constexpr PictureQuality kBest = {.divisor = 1, .jpeg = 80};

  // Whether no picture is on the way.
  bool IsIdle() const { return on_the_way_.empty(); }
  // Whether another picture may be sent.
  bool MaySend() const { return on_the_way_.size() < window_; }
  // A new picture was not sent, since MaySend was false.
  void Skipped() { ++skipped_; }
  // `number`: greater than that of the picture before.
  void Sent(uint64_t number, int64_t now_ns);
  // The browser has drawn this picture, and those sent before are superseded.
  // Ignores numbers that are not on the way.
  void Drawn(uint64_t number, int64_t now_ns);
  // The round trip of an empty message. The shortest one counts.
  void MeasuredLine(int64_t round_trip_ns);

  size_t level() const { return level_; }
  PictureQuality quality() const;
  size_t window() const { return window_; }
  // The newest picture's round trip; nullopt: none was drawn yet.
  std::optional<int64_t> round_trip_ns() const { return round_trip_ns_; }

 private:
  struct OnTheWay {
    uint64_t number = 0;
    int64_t sent_ns = 0;
  };
  void Worsen();
  void EndPeriod(int64_t now_ns);

  std::deque<OnTheWay> on_the_way_;
  size_t window_ = 1;
  // The first pictures are small: the line is not known yet.
  size_t level_ = 3;
  bool starting_ = true;  // until the first long delay or the best level
  std::optional<int64_t> line_ns_;
  std::optional<int64_t> round_trip_ns_;
  // Of the current period:
  std::optional<int64_t> period_ns_;
  uint64_t drawn_ = 0;
  uint64_t skipped_ = 0;
  bool long_delay_ = false;  // a delay above kShortDelayNs
  // Periods without a long delay that raise the quality; doubled after each
  // rise that failed.
  uint32_t good_periods_ = 0;
  uint32_t wanted_periods_ = 2;
};

}  // namespace tandem

#include "viz/web/picture_pace.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

constexpr std::array<PictureQuality, PicturePace::kLevels> kQualities = {{
    PicturePace::kBest,
    {.divisor = 1, .jpeg = 60},
    {.divisor = 1, .jpeg = 40},
    {.divisor = 2, .jpeg = 60},
    {.divisor = 2, .jpeg = 40},
    {.divisor = 4, .jpeg = 40},
}};

constexpr uint32_t kMostPeriods = 8;

}  // namespace

PictureQuality PicturePace::quality() const { return kQualities.at(level_); }

void PicturePace::Sent(uint64_t number, int64_t now_ns) {
  on_the_way_.push_back({number, now_ns});
}

void PicturePace::MeasuredLine(int64_t round_trip_ns) {
  line_ns_ = std::min(line_ns_.value_or(round_trip_ns), round_trip_ns);
}

void PicturePace::Drawn(uint64_t number, int64_t now_ns) {
  const auto drawn = std::ranges::find(on_the_way_, number, &OnTheWay::number);
  if (drawn == on_the_way_.end()) return;
  const int64_t round_trip_ns = now_ns - drawn->sent_ns;
  on_the_way_.erase(on_the_way_.begin(), drawn + 1);
  round_trip_ns_ = round_trip_ns;
  MeasuredLine(round_trip_ns);
  ++drawn_;
  const int64_t delay_ns = round_trip_ns - *line_ns_;
  long_delay_ = long_delay_ || delay_ns > kShortDelayNs;
  if (delay_ns > kMostDelayNs) {
    starting_ = false;
    if (window_ == 1) Worsen();
    window_ = std::max<size_t>(1, window_ / 2);
  } else if (delay_ns <= kShortDelayNs) {
    window_ = std::min(kMostOnTheWay, window_ + 1);
    if (starting_ && level_ > 0) --level_;
    if (level_ == 0) starting_ = false;
  } else {
    starting_ = false;
  }
  if (!period_ns_.has_value()) period_ns_ = now_ns;
  if (now_ns - *period_ns_ >= kPeriodNs) EndPeriod(now_ns);
}

void PicturePace::Worsen() {
  level_ = std::min(kLevels - 1, level_ + 1);
  good_periods_ = 0;
  wanted_periods_ = std::min(kMostPeriods, 2 * wanted_periods_);
}

void PicturePace::EndPeriod(int64_t now_ns) {
  const double secs = static_cast<double>(now_ns - *period_ns_) * 1e-9;
  const bool is_slow = static_cast<double>(drawn_) < kLeastRate * secs;
  if (is_slow && skipped_ > drawn_ / 2) {
    Worsen();
  } else if (long_delay_ || 10 * skipped_ > drawn_) {
    good_periods_ = 0;
  } else if (level_ > 0 && ++good_periods_ >= wanted_periods_) {
    --level_;
    good_periods_ = 0;
  }
  period_ns_ = now_ns;
  drawn_ = 0;
  skipped_ = 0;
  long_delay_ = false;
}

}  // namespace tandem

#include "viz/web/picture_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

// A line with a bandwidth and a delay in each direction, and a browser that
// draws at once. A model in the test's own time: a frame is published every
// 33 ms.
class Line {
 public:
  Line(double bytes_per_sec, int64_t delay_ms, double best_frame_bytes)
      : bytes_per_sec_(bytes_per_sec),
        delay_ns_(delay_ms * kMs),
        best_frame_bytes_(best_frame_bytes) {
    pace.MeasuredLine(2 * delay_ns_);
  }

  void Run(double secs) {
    const int64_t end_ns = now_ns_ + static_cast<int64_t>(secs * 1e9);
    for (; now_ns_ < end_ns; now_ns_ += kMs) {
      while (!acks_.empty() && acks_.front().at_ns <= now_ns_) {
        pace.Drawn(acks_.front().number, now_ns_);
        acks_.pop_front();
      }
      if (now_ns_ % (33 * kMs) == 0) Publish();
    }
  }

  void SetBytesPerSec(double rate) { bytes_per_sec_ = rate; }
  void ResetWorst() { worst_age_ns = 0; }

  PicturePace pace;
  int64_t worst_age_ns = 0;  // of a picture when it was drawn
  uint64_t drawn = 0;

 private:
  struct Ack {
    uint64_t number = 0;
    int64_t at_ns = 0;
  };

  void Publish() {
    if (!pace.MaySend()) return pace.Skipped();
    const PictureQuality quality = pace.quality();
    const double share = quality.jpeg / 80.0;
    const double bytes =
        best_frame_bytes_ * share / (quality.divisor * quality.divisor);
    free_ns_ = std::max(free_ns_, now_ns_) +
               static_cast<int64_t>(bytes / bytes_per_sec_ * 1e9);
    const int64_t drawn_ns = free_ns_ + delay_ns_;
    worst_age_ns = std::max(worst_age_ns, drawn_ns - now_ns_);
    pace.Sent(++number_, now_ns_);
    acks_.push_back({number_, drawn_ns + delay_ns_});
    ++drawn;
  }

  double bytes_per_sec_;
  const int64_t delay_ns_;
  const double best_frame_bytes_;
  int64_t now_ns_ = 0;
  int64_t free_ns_ = 0;  // the time at which the line has sent everything
  uint64_t number_ = 0;
  std::deque<Ack> acks_;
};

TEST(PicturePace, SendsOneSmallPictureFirst) {
  PicturePace pace;
  EXPECT_TRUE(pace.MaySend());
  EXPECT_GT(pace.level(), 0U);
  pace.Sent(1, 0);
  EXPECT_FALSE(pace.MaySend());
  pace.Drawn(1, 5 * kMs);
  EXPECT_TRUE(pace.MaySend());
}

TEST(PicturePace, IgnoresAcknowledgementsOfPicturesThatWereNotSent) {
  PicturePace pace;
  pace.Sent(5, 0);
  for (const uint64_t number : {0U, 4U, 6U}) pace.Drawn(number, kMs);
  EXPECT_FALSE(pace.MaySend());
  EXPECT_FALSE(pace.round_trip_ns().has_value());
  pace.Drawn(5, kMs);
  pace.Drawn(5, 2 * kMs);  // a repetition
  EXPECT_EQ(pace.round_trip_ns(), kMs);
}

TEST(PicturePace, ANewerPictureSupersedesThoseBefore) {
  PicturePace pace;
  pace.Sent(1, 0);
  pace.Drawn(1, kMs);
  pace.Sent(2, 10 * kMs);
  pace.Sent(3, 20 * kMs);
  EXPECT_FALSE(pace.MaySend());
  pace.Drawn(3, 21 * kMs);
  EXPECT_TRUE(pace.MaySend());
  EXPECT_EQ(pace.round_trip_ns(), kMs);
}

TEST(PicturePace, AFastLineGetsTheBestPicturesAndEachOne) {
  Line line(/*bytes_per_sec=*/100e6, /*delay_ms=*/1, 50e3);
  line.Run(1);
  EXPECT_EQ(line.pace.level(), 0U);
  line.drawn = 0;
  line.Run(10);
  EXPECT_GE(line.drawn, 300U);
  EXPECT_LT(line.worst_age_ns, 20 * kMs);
}

TEST(PicturePace, ALongFastLineHasSeveralPicturesOnTheWay) {
  Line line(100e6, /*delay_ms=*/100, 50e3);
  line.Run(3);
  line.drawn = 0;
  line.Run(10);
  EXPECT_GE(line.drawn, 295U);  // 30 a second, with round trips of 200 ms
  EXPECT_EQ(line.pace.level(), 0U);
}

TEST(PicturePace, ASlowLineGetsSmallPicturesInsteadOfOldOnes) {
  // 1 Mbit/s and 100 ms each way.
  for (const double frame_bytes : {20e3, 50e3, 150e3}) {
    Line line(125e3, /*delay_ms=*/100, frame_bytes);
    line.Run(60);
    EXPECT_LT(line.worst_age_ns, 1000 * kMs) << frame_bytes;
    EXPECT_GT(line.drawn, 60 * 4U) << frame_bytes;
  }
}

TEST(PicturePace, FollowsALineThatBecomesSlowAndFastAgain) {
  Line line(10e6, /*delay_ms=*/20, 50e3);
  line.Run(5);
  EXPECT_EQ(line.pace.level(), 0U);
  line.SetBytesPerSec(60e3);
  line.Run(20);
  EXPECT_GT(line.pace.level(), 1U);
  line.ResetWorst();
  line.Run(20);
  EXPECT_LT(line.worst_age_ns, 1000 * kMs);
  line.SetBytesPerSec(10e6);
  line.Run(240);
  EXPECT_EQ(line.pace.level(), 0U);
}

TEST(PicturePace, AFrozenBrowserGetsNothingMore) {
  PicturePace pace;
  uint64_t sent = 0;
  for (int i = 0; i < 20; ++i) {  // a fast browser
    pace.Sent(++sent, i * kMs);
    pace.Drawn(sent, i * kMs + 1);
  }
  uint64_t more = 0;
  while (pace.MaySend()) {
    pace.Sent(++sent, 100 * kMs);
    ++more;
  }
  EXPECT_LE(more, PicturePace::kMostOnTheWay);
}

}  // namespace
}  // namespace tandem

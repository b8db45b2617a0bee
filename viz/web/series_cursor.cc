#include "viz/web/series_cursor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

// Six digits: a plot shows no more, and the text is half as long.
double Short(double number) {
  if (number == 0 || !std::isfinite(number)) return 0;
  const double power =
      std::pow(10.0, 5 - std::floor(std::log10(std::abs(number))));
  return std::isfinite(power) ? std::round(number * power) / power : number;
}

}  // namespace

nlohmann::json SeriesCursor::Next(const SampleHistory& history) {
  if (history.count() == count_) return nullptr;
  const std::vector<SampleHistory::Bucket>& buckets = history.buckets();
  // Buckets that were merged are all sent again. The last sent one may have got
  // more samples.
  const bool is_merged = history.bucket_ns() != bucket_ns_;
  const size_t from =
      is_merged ? 0 : std::min(buckets_, buckets.size()) - (buckets_ > 0);
  nlohmann::json points = nlohmann::json::array();
  for (size_t i = from; i < buckets.size(); ++i) {
    const SampleHistory::Bucket& bucket = buckets[i];
    points.push_back({(bucket.start_ns - buckets.front().start_ns) / kNsPerMs,
                      Short(bucket.mean()), Short(bucket.min),
                      Short(bucket.max)});
  }
  bucket_ns_ = history.bucket_ns();
  buckets_ = buckets.size();
  count_ = history.count();
  return {{"bucket_ms", bucket_ns_ / kNsPerMs},
          {"from", from},
          {"points", std::move(points)}};
}

}  // namespace tandem

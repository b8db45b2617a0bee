#include "viz/web/series_cursor.h"

#include <algorithm>
#include <vector>

#include "viz/web/json_text.h"

namespace tandem {

nlohmann::json SeriesCursor::Next(const SampleHistory& history) {
  if (history.count() == count_) return nullptr;
  constexpr int64_t kNsPerMs = 1'000'000;
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
                      SixDigits(bucket.mean()), SixDigits(bucket.min),
                      SixDigits(bucket.max)});
  }
  bucket_ns_ = history.bucket_ns();
  buckets_ = buckets.size();
  count_ = history.count();
  return {{"bucket_ms", bucket_ns_ / kNsPerMs},
          {"from", from},
          {"points", std::move(points)}};
}

}  // namespace tandem

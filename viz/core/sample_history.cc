#include "viz/core/sample_history.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

void Merge(const SampleHistory::Bucket& from, SampleHistory::Bucket* into) {
  into->count += from.count;
  into->sum += from.sum;
  into->min = std::min(into->min, from.min);
  into->max = std::max(into->max, from.max);
  into->last = from.last;
}

}  // namespace

SampleHistory::SampleHistory(size_t capacity)
    : capacity_(std::max<size_t>(2, capacity)), bucket_ns_(kFirstBucketNs) {
  buckets_.reserve(capacity_);
}

void SampleHistory::Add(int64_t now_ns, double value) {
  if (!std::isfinite(value)) return;
  if (buckets_.empty()) begin_ns_ = now_ns;
  if (!buckets_.empty()) now_ns = std::max(now_ns, buckets_.back().start_ns);
  HalveUntilFits(now_ns);
  const int64_t start_ns =
      begin_ns_ + (now_ns - begin_ns_) / bucket_ns_ * bucket_ns_;
  const Bucket sample = {start_ns, 1, value, value, value, value};
  ++count_;
  if (!buckets_.empty() && buckets_.back().start_ns == start_ns) {
    Merge(sample, &buckets_.back());
  } else {
    buckets_.push_back(sample);
  }
}

void SampleHistory::HalveUntilFits(int64_t now_ns) {
  while ((now_ns - begin_ns_) / bucket_ns_ >= static_cast<int64_t>(capacity_)) {
    bucket_ns_ *= 2;
    size_t kept = 0;
    for (const Bucket& bucket : buckets_) {
      const int64_t start_ns =
          begin_ns_ + (bucket.start_ns - begin_ns_) / bucket_ns_ * bucket_ns_;
      if (kept > 0 && buckets_[kept - 1].start_ns == start_ns) {
        Merge(bucket, &buckets_[kept - 1]);
      } else {
        buckets_[kept] = bucket;
        buckets_[kept++].start_ns = start_ns;
      }
    }
    buckets_.resize(kept);
  }
}

}  // namespace tandem

#include "viz/core/run_curves.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

void Merge(const Curve::Bucket& later, Curve::Bucket* bucket) {
  bucket->last = later.last;
  bucket->count += later.count;
  bucket->sum += later.sum;
  bucket->min = std::min(bucket->min, later.min);
  bucket->max = std::max(bucket->max, later.max);
}

// Returns buckets of `each` neighbours; the last one may have fewer.
std::vector<Curve::Bucket> Merged(const std::vector<Curve::Bucket>& buckets,
                                  size_t each) {
  std::vector<Curve::Bucket> merged;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (i % each == 0) {
      merged.push_back(buckets[i]);
    } else {
      Merge(buckets[i], &merged.back());
    }
  }
  return merged;
}

}  // namespace

void Curve::Add(const CurvePlace& at, double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  const Bucket one = {
      .last = at, .count = 1, .sum = value, .min = value, .max = value};
  if (!buckets_.empty() && buckets_.back().count < values_each_) {
    return Merge(one, &buckets_.back());
  }
  if (buckets_.size() == kBuckets) {
    buckets_ = Merged(buckets_, 2);
    values_each_ *= 2;
  }
  buckets_.push_back(one);
}

std::vector<Curve::Bucket> Curve::Points(size_t most) const {
  return Merged(buckets_, std::max<size_t>(1, (size() + most - 1) / most));
}

void RunCurves::AddEpisode(uint64_t number, double time_secs,
                           double total_reward, uint64_t steps) {
  last_episode_ = number;
  steps_ += static_cast<double>(steps);
  const CurvePlace at = {
      .step = steps_,
      .episode = static_cast<double>(number - attempt_.episodes_before),
      .time_secs = time_secs};
  curves_[kReturn].Add(at, total_reward);
  curves_[kLength].Add(at, static_cast<double>(steps));
}

void RunCurves::AddScalar(uint64_t number, const CurvePlace& at,
                          const std::string& name, double value) {
  last_scalars_ = number;
  const auto [found, is_new] = places_.try_emplace(name, curves_.size());
  if (is_new) curves_.emplace_back(name);
  curves_[found->second].Add(at, value);
}

size_t RunCurves::size() const {
  size_t buckets = 0;
  for (const Curve& curve : curves_) buckets += curve.size();
  return buckets;
}

RunCurves& RunCurvesCache::Of(const std::string& run_id,
                              const RunAttempt& attempt) {
  const auto found =
      runs_.try_emplace(run_id, Entry{.curves = RunCurves(attempt)}).first;
  Entry& entry = found->second;
  const RunAttempt& known = entry.curves.attempt();
  if (known.number != attempt.number ||
      known.started_secs != attempt.started_secs) {
    entry.curves = RunCurves(attempt);
  }
  entry.used = ++uses_;
  size_t buckets = 0;
  auto oldest = runs_.begin();
  for (auto at = runs_.begin(); at != runs_.end(); ++at) {
    buckets += at->second.curves.size();
    if (at->second.used < oldest->second.used) oldest = at;
  }
  if (buckets > kMostBuckets && oldest != found) runs_.erase(oldest);
  return entry.curves;
}

}  // namespace tandem

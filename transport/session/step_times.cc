#include "transport/step_times.h"

#include <numeric>

namespace tandem {

uint64_t StepTimesSnapshot::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

double StepTimesSnapshot::Quantile(double q) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = q * static_cast<double>(all);
  double below = 0;
  for (uint32_t bucket = 0; bucket < StepTimes::kBuckets; ++bucket) {
    const double here = static_cast<double>(counts[bucket]);
    if (here > 0 && below + here >= wanted) {
      const double start = static_cast<double>(StepTimeBucketStart(bucket));
      const double end = static_cast<double>(StepTimeBucketStart(bucket + 1));
      return start + (end - start) * std::max(wanted - below, 0.0) / here;
    }
    below += here;
  }
  return static_cast<double>(StepTimeBucketStart(StepTimes::kBuckets));
}

double StepTimesSnapshot::Mean() const {
  const uint64_t all = count();
  return all == 0 ? 0
                  : static_cast<double>(total_ns) / static_cast<double>(all);
}

uint64_t StepTimesSnapshot::SlowestEnd() const {
  for (uint32_t bucket = StepTimes::kBuckets; bucket > 0; --bucket) {
    if (counts[bucket - 1] != 0) return StepTimeBucketStart(bucket);
  }
  return 0;
}

StepTimesSnapshot StepTimesSnapshot::Since(
    const StepTimesSnapshot& earlier) const {
  StepTimesSnapshot difference;
  difference.total_ns = total_ns - earlier.total_ns;
  for (uint32_t bucket = 0; bucket < StepTimes::kBuckets; ++bucket) {
    difference.counts[bucket] = counts[bucket] - earlier.counts[bucket];
  }
  return difference;
}

StepTimesSnapshot SnapshotOf(const StepTimes& times) {
  StepTimesSnapshot snapshot;
  // relaxed: statistics; they publish no other data.
  snapshot.total_ns = times.total_ns.load(std::memory_order_relaxed);
  for (uint32_t bucket = 0; bucket < StepTimes::kBuckets; ++bucket) {
    // relaxed: as above.
    snapshot.counts[bucket] =
        times.counts[bucket].load(std::memory_order_relaxed);
  }
  return snapshot;
}

void ClearStepTimes(StepTimes* times) {
  // relaxed: statistics; the caller is the only writer.
  times->total_ns.store(0, std::memory_order_relaxed);
  for (SharedWord<uint64_t>& count : times->counts) {
    // relaxed: as above.
    count.store(0, std::memory_order_relaxed);
  }
}

}  // namespace tandem

// Recording into and reading from the StepTimes histograms of the region.
//
// Data flow: one side records each exchange; any process reads quantiles.
// Ownership: the region's words, written by one side.
//
//   RecordStepTime(&header->engine_step_times, taken_to_published_ns);
//   StepTimesSnapshot now = SnapshotOf(header->engine_step_times);
//   double p99_ns = now.Quantile(0.99);

#ifndef TANDEM_TRANSPORT_SESSION_STEP_TIMES_H_
#define TANDEM_TRANSPORT_SESSION_STEP_TIMES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "schema/layout/lrbc.h"

namespace tandem {

// The bucket of a duration: four linear parts to an octave, from 2^7 ns.
constexpr uint32_t StepTimeBucket(uint64_t ns) {
  const uint64_t value = std::clamp<uint64_t>(ns, 128, (uint64_t{1} << 33) - 1);
  const uint32_t octave = static_cast<uint32_t>(std::bit_width(value)) - 1;
  const uint32_t part = static_cast<uint32_t>(value >> (octave - 2)) & 3;
  return (octave - 7) * 4 + part;
}

// The shortest duration that falls into a bucket, in nanoseconds; that of
// bucket kBuckets is the end of the last.
constexpr uint64_t StepTimeBucketStart(uint32_t bucket) {
  return uint64_t{4 + bucket % 4} << (bucket / 4 + 5);
}

static_assert(StepTimeBucket((uint64_t{1} << 33) - 1) ==
              StepTimes::kBuckets - 1);
static_assert(StepTimeBucketStart(0) == 128);
static_assert(StepTimeBucketStart(StepTimes::kBuckets) == uint64_t{1} << 33);

// Adds one duration. Only the writer of these words calls it.
inline void RecordStepTime(StepTimes* times, uint64_t ns) {
  SharedWord<uint64_t>& count = times->counts[StepTimeBucket(ns)];
  // relaxed: one writer; readers want totals, not an instant of them.
  count.store(count.load(std::memory_order_relaxed) + 1,
              std::memory_order_relaxed);
  // relaxed: as above.
  times->total_ns.store(times->total_ns.load(std::memory_order_relaxed) + ns,
                        std::memory_order_relaxed);
}

// A private copy.
struct StepTimesSnapshot {
  uint64_t total_ns = 0;
  std::array<uint64_t, StepTimes::kBuckets> counts = {};

  uint64_t count() const;
  // Nanoseconds that the fraction `q` of the durations does not exceed, exact
  // to a bucket's width (at most a quarter); 0 when there are none.
  double Quantile(double q) const;
  // Nanoseconds; 0 when there are none.
  double Mean() const;
  // Nanoseconds that none of the durations reached: the end of the slowest
  // one's bucket (kBuckets' for those beyond the last); 0 when there are none.
  uint64_t SlowestEnd() const;
  // What came after `earlier`.
  StepTimesSnapshot Since(const StepTimesSnapshot& earlier) const;
};

// Copies the words, each by itself: totals may be one exchange apart.
StepTimesSnapshot SnapshotOf(const StepTimes& times);

// Zeroes the words. Only their writer calls it.
void ClearStepTimes(StepTimes* times);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_STEP_TIMES_H_

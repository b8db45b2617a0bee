// Records durations in the StepTimes histograms of a region, and reads them.
//
// Data flow: one side records each exchange; any process reads quantiles.
// Ownership: the region's words have one writer, a side.
//
//   RecordStepTime(&header->engine_step_times, taken_to_published_ns);
//   StepTimesSnapshot now = SnapshotOf(header->engine_step_times);
//   double p99_ns = now.Quantile(0.99);

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "schema/layout/lrbc.h"

namespace tandem {

// Returns the bucket of a duration: four linear parts per octave, from 2^7 ns.
constexpr uint32_t StepTimeBucket(uint64_t ns) {
  const uint64_t value = std::clamp<uint64_t>(ns, 128, (uint64_t{1} << 33) - 1);
  const uint32_t octave = static_cast<uint32_t>(std::bit_width(value)) - 1;
  const uint32_t part = static_cast<uint32_t>(value >> (octave - 2)) & 3;
  return (octave - 7) * 4 + part;
}

// Returns the shortest duration of a bucket, in nanoseconds; for kBuckets, the
// end of the last bucket.
constexpr uint64_t StepTimeBucketStart(uint32_t bucket) {
  return uint64_t{4 + bucket % 4} << (bucket / 4 + 5);
}

static_assert(StepTimeBucket((uint64_t{1} << 33) - 1) ==
              StepTimes::kBuckets - 1);
static_assert(StepTimeBucketStart(0) == 128);
static_assert(StepTimeBucketStart(StepTimes::kBuckets) == uint64_t{1} << 33);

// Adds to a counter. Only its writer calls it; other threads may read it.
inline void AddTo(SharedWord<uint64_t>* counter, uint64_t value) {
  // relaxed: one writer; readers need totals, not a consistent instant.
  counter->store(counter->load(std::memory_order_relaxed) + value,
                 std::memory_order_relaxed);
}

// Adds one duration. Only the writer of these words calls it.
inline void RecordStepTime(StepTimes* times, uint64_t ns) {
  AddTo(&times->counts[StepTimeBucket(ns)], 1);
  AddTo(&times->total_ns, ns);
}

// A private copy.
struct StepTimesSnapshot {
  uint64_t total_ns = 0;
  std::array<uint64_t, StepTimes::kBuckets> counts = {};

  uint64_t count() const;
  // Returns the nanoseconds that the fraction `q` of the durations does not
  // exceed, exact to a bucket's width (at most a quarter); 0 if there are none.
  double Quantile(double q) const;
  // The mean in nanoseconds; 0 if there are none.
  double Mean() const;
  // Returns the end of the slowest duration's bucket, in nanoseconds; for a
  // duration beyond the last bucket, kBuckets' end; 0 if there are none.
  uint64_t SlowestEnd() const;
  // Returns the durations after `earlier`.
  StepTimesSnapshot Since(const StepTimesSnapshot& earlier) const;
};

// Copies the words one by one: totals may be one exchange apart.
StepTimesSnapshot SnapshotOf(const StepTimes& times);

// Zeroes the words. Only the writer of these words calls it.
void ClearStepTimes(StepTimes* times);

}  // namespace tandem

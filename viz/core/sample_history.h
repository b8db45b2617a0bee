// SampleHistory: the complete history of one number, in bounded memory.
//
// Data flow: (time, value) at each new frame -> buckets of equal width. When
// all buckets are used, each two neighbours are merged. So a plot shows the
// whole run; one extreme sample stays visible as its bucket's min or max.
// Ownership: one FrameWatch; not thread-safe.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

class SampleHistory {
 public:
  struct Bucket {
    int64_t start_ns = 0;  // a multiple of bucket_ns after the first sample
    uint64_t count = 0;    // samples; no bucket is empty
    double sum = 0;
    double min = 0;
    double max = 0;
    double last = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };

  static constexpr int64_t kFirstBucketNs = 16'000'000;  // a bucket's width

  // `capacity`: at least 2 buckets. Allocates all memory.
  explicit SampleHistory(size_t capacity);

  // Adds a sample; an earlier time counts as the newest time. Ignores values
  // that are not finite. Does not allocate.
  void Add(int64_t now_ns, double value);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int64_t bucket_ns() const { return bucket_ns_; }
  uint64_t count() const { return count_; }  // samples added

 private:
  void HalveUntilFits(int64_t now_ns);

  size_t capacity_;
  std::vector<Bucket> buckets_;
  int64_t begin_ns_ = 0;
  int64_t bucket_ns_;
  uint64_t count_ = 0;
};

// The histories of a run's numbers.
struct RunHistories {
  static constexpr size_t kBuckets = 512;
  SampleHistory rewards{kBuckets};
  SampleHistory returns{kBuckets};
  SampleHistory step_rates{kBuckets};
  SampleHistory episode_lengths{kBuckets};
};

}  // namespace tandem

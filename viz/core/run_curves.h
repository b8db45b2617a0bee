// RunCurves: the curves of one run of the daemon in bounded memory: returns,
// lengths of episodes, and the run's own numbers by name.
//
// Data flow: rows of the daemon's tables, in their order -> buckets of equally
// many values; when all buckets are used, each two neighbours are merged. A
// bucket has the place of its last value by step, by episode and by time.
// Ownership: one thread, that of the cache.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// One start of a run's worker. Its rows have greater numbers than those before.
struct RunAttempt {
  uint32_t number = 1;
  double started_secs = 0;  // since 1970
  double ended_secs = 0;    // 0: it goes on
  std::string reason = {};  // of its end
  uint64_t episodes_before = 0;
  uint64_t scalars_before = 0;
  friend bool operator==(const RunAttempt&, const RunAttempt&) = default;
};

struct CurvePlace {
  double step = 0;
  double episode = 0;    // from 1; NaN: unknown
  double time_secs = 0;  // since 1970; NaN: unknown
};

class Curve {
 public:
  static constexpr size_t kBuckets = 256;  // an even number

  struct Bucket {
    CurvePlace last;
    uint64_t count = 0;
    double sum = 0;
    double min = 0;
    double max = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };

  explicit Curve(std::string name) : name_(std::move(name)) {}

  // Counts values that are not finite, and adds the others.
  void Add(const CurvePlace& at, double value);

  const std::string& name() const { return name_; }
  uint64_t not_finite() const { return not_finite_; }
  size_t size() const { return buckets_.size(); }
  // Returns the whole curve in at most `most` buckets, at least 1.
  std::vector<Bucket> Points(size_t most) const;

 private:
  std::string name_;
  std::vector<Bucket> buckets_;
  uint64_t values_each_ = 1;  // in a full bucket
  uint64_t not_finite_ = 0;
};

class RunCurves {
 public:
  static constexpr size_t kReturn = 0;
  static constexpr size_t kLength = 1;

  explicit RunCurves(const RunAttempt& attempt)
      : attempt_(attempt),
        last_episode_(attempt.episodes_before),
        last_scalars_(attempt.scalars_before) {}

  // Rows in the order of their numbers.
  void AddEpisode(uint64_t number, double time_secs, double total_reward,
                  uint64_t steps);
  void AddScalar(uint64_t number, const CurvePlace& at, const std::string& name,
                 double value);

  const RunAttempt& attempt() const { return attempt_; }
  uint64_t last_episode() const { return last_episode_; }  // its number
  uint64_t last_scalars() const { return last_scalars_; }
  // kReturn, kLength, then names in the order of their first values.
  const std::vector<Curve>& curves() const { return curves_; }
  size_t size() const;  // buckets

 private:
  RunAttempt attempt_;
  uint64_t last_episode_;
  uint64_t last_scalars_;
  double steps_ = 0;  // of all episodes
  std::vector<Curve> curves_ = {Curve("return"), Curve("episode length")};
  std::map<std::string, size_t> places_;  // of names
};

// The curves of the runs that were asked for last.
class RunCurvesCache {
 public:
  static constexpr size_t kMostBuckets = size_t{1} << 20;  // 64 MiB

  // Returns the run's curves, new ones for a new attempt, also of a new run
  // with the id of a deleted one. The reference is valid until the next call.
  RunCurves& Of(const std::string& run_id, const RunAttempt& attempt);

 private:
  struct Entry {
    RunCurves curves;
    uint64_t used = 0;
  };
  std::map<std::string, Entry> runs_;
  uint64_t uses_ = 0;
};

}  // namespace tandem

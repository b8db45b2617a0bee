// CpuShares: which processors the runs with metadata.tandem.enforce_resources
// have.
//
// Data flow: a run's resources.cpus -> Take -> the affinity of its proxy, which
// its worker inherits -> Release at its end.
// Ownership: the RunStarter's; its thread (EventLoop) alone calls.

#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace tandem::slow_lane {

class CpuShares {
 public:
  // `allowed`: numbers of the processors that the daemon may use.
  explicit CpuShares(const std::vector<int>& allowed) {
    for (const int cpu : allowed) runs_[cpu] = 0;
  }

  // Returns the `count` processors with the fewest runs, the lowest numbers
  // first; all if there are fewer.
  std::vector<int> Take(size_t count) {
    std::vector<int> taken;
    for (const auto& [cpu, runs] : runs_) taken.push_back(cpu);
    std::ranges::stable_sort(
        taken, {}, [this](int cpu) { return runs_.find(cpu)->second; });
    if (taken.size() > count) taken.resize(count);
    std::ranges::sort(taken);
    Mark(taken);
    return taken;
  }

  // Counts the processors of a run that an earlier daemon has started; ignores
  // those that this daemon may not use.
  void Mark(const std::vector<int>& cpus) { Add(cpus, 1); }
  void Release(const std::vector<int>& cpus) { Add(cpus, -1); }

 private:
  void Add(const std::vector<int>& cpus, int by) {
    for (const int cpu : cpus) {
      if (const auto at = runs_.find(cpu); at != runs_.end()) at->second += by;
    }
  }

  std::map<int, int> runs_;  // processor -> number of runs
};

}  // namespace tandem::slow_lane

#include "slow_lane/daemon/run_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace tandem::slow_lane {
namespace {

using Wait = RunQueue::Wait;

// The runs of a test; a run needs as many cores and GPUs as its configuration
// says.
struct Runs {
  LiveRun* Add(int32_t priority, uint64_t cpus, uint32_t gpus) {
    LiveRun& run = all.emplace_back();
    run.order = all.size();
    run.config.priority = priority;
    run.config.cpus = cpus;
    run.config.gpus_requested = gpus;
    queue.Add(&run, {.room = cpus > 0, .gpus = gpus > 0});
    return &run;
  }

  std::deque<LiveRun> all;
  RunQueue queue;
};

TEST(RunQueue, CostOfASweepGrowsWithItsRunsNotWithTheirSquare) {
  constexpr size_t kRuns = 10'000;
  constexpr size_t kCores = 2;
  Runs runs;
  size_t visits = 0;
  std::deque<LiveRun*> running;
  const auto start_all = [&] {
    runs.queue.Start([&](LiveRun* run) {
      ++visits;
      if (running.size() == kCores) return Wait::kRoom;
      running.push_back(run);
      return Wait::kNothing;
    });
  };
  for (size_t i = 0; i < kRuns; ++i) {
    runs.Add(static_cast<int32_t>(i % 7), 1, 0);
    start_all();
  }
  size_t ended = 0;
  for (; !running.empty(); ++ended) {
    running.pop_front();
    start_all();
  }
  EXPECT_EQ(ended, kRuns);
  // Each is started once. Each of the passes meets one that waits.
  EXPECT_LE(visits, 3 * kRuns);
}

// What Start does, by a walk over all runs.
std::vector<LiveRun*> StartedOf(std::vector<LiveRun*> runs, uint64_t cores,
                                uint32_t gpus) {
  std::ranges::stable_sort(runs, std::greater(), [](const LiveRun* run) {
    return run->config.priority;
  });
  std::vector<LiveRun*> started;
  bool room_is_awaited = false;
  bool gpus_are_awaited = false;
  for (LiveRun* const run : runs) {
    const RunConfig& config = run->config;
    if ((config.cpus > 0 && room_is_awaited) ||
        (config.gpus_requested > 0 && gpus_are_awaited)) {
      continue;
    }
    if (config.cpus > cores) {
      room_is_awaited = true;
    } else if (config.gpus_requested > gpus) {
      gpus_are_awaited = true;
    } else {
      cores -= config.cpus;
      gpus -= config.gpus_requested;
      started.push_back(run);
    }
  }
  return started;
}

TEST(RunQueue, StartsWhatAWalkOverAllRunsStarts) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t limit) {
    return static_cast<uint32_t>(random() % limit);
  };
  for (int round = 0; round < 300; ++round) {
    Runs runs;
    for (uint32_t i = below(20); i > 0; --i) {
      runs.Add(static_cast<int32_t>(below(3)) - 1, below(4), below(3));
    }
    std::vector<LiveRun*> waiting;
    for (LiveRun& run : runs.all) waiting.push_back(&run);
    while (!waiting.empty()) {
      const uint64_t all_cores = 3 + below(3);
      const uint32_t all_gpus = 2 + below(2);
      uint64_t cores = all_cores;
      uint32_t gpus = all_gpus;
      std::vector<LiveRun*> started;
      runs.queue.Start([&](LiveRun* run) {
        if (run->config.cpus > cores) return Wait::kRoom;
        if (run->config.gpus_requested > gpus) return Wait::kGpus;
        cores -= run->config.cpus;
        gpus -= run->config.gpus_requested;
        started.push_back(run);
        return Wait::kNothing;
      });
      ASSERT_EQ(started, StartedOf(waiting, all_cores, all_gpus));
      std::erase_if(waiting, [&](LiveRun* run) {
        return std::ranges::find(started, run) != started.end();
      });
    }
  }
}

TEST(RunQueue, RunThatWaitsForSomethingElseDelaysNone) {
  Runs runs;
  LiveRun* const first = runs.Add(0, 1, 1);
  LiveRun* const second = runs.Add(0, 1, 1);
  std::vector<LiveRun*> visited;
  runs.queue.Start([&](LiveRun* run) {
    visited.push_back(run);
    if (run != first) return Wait::kGpus;
    runs.queue.Add(run, {.room = true});  // it has its GPUs
    return Wait::kOther;
  });
  EXPECT_EQ(visited, (std::vector{first, second}));
  std::vector<Wait> waits;
  runs.queue.ForEach([&](LiveRun*, Wait wait) { waits.push_back(wait); });
  EXPECT_EQ(waits, (std::vector{Wait::kOther, Wait::kGpus}));
}

}  // namespace
}  // namespace tandem::slow_lane

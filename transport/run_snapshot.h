// RunSnapshot: the statistics of a run's rewards, for display.
//
// Data flow: rewards and ends of episodes -> an engine's RunStatistics, or a
// client that computes rewards itself -> frames, the inspector.
//
//   const RunSnapshot run = {.last_reward = 0.5, .episodes = 17};

#pragma once

#include <cstdint>

namespace tandem {

struct RunSnapshot {
  double last_reward = 0;     // mean of environments
  double rolling_return = 0;  // mean of the last 100 episodes; until one has
                              // ended: of the current ones so far
  uint64_t episodes = 0;      // ended, of all environments
  double episode_length = 0;  // mean of the same episodes as rolling_return, in
                              // steps; 0: none has ended

  friend bool operator==(const RunSnapshot&, const RunSnapshot&) = default;
};

}  // namespace tandem

// RunStatistics: a run's statistics for display: reward, return, episodes and
// their length, steps.
//
// Data flow: an exchange's rewards and flags -> Count -> Now.
// Ownership: the stepping thread.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/run_snapshot.h"

namespace tandem {

// The part of an exchange that RunStatistics reads: [num_envs] each.
struct CountedExchange {
  bool stepped = true;              // false: only resets
  bool ended_are_reset = true;      // SAME_STEP: a done begins an episode
  std::span<const uint8_t> resets;  // not 0: reset, or skipped (kSkip)
  std::span<const float> rewards;
  std::span<const uint8_t> dones;
};

// Count allocates nothing, and takes about a nanosecond an environment.
class RunStatistics {
 public:
  // `has_rewards`: whether the engine computes rewards. Without them, the
  // reward and the return of a snapshot are NaN: unknown.
  explicit RunStatistics(uint32_t num_envs, bool has_rewards = true)
      : has_rewards_(has_rewards),
        returns_(num_envs),
        rewards_(num_envs),
        begins_(num_envs),
        numbers_(num_envs),
        over_(num_envs) {}

  void Count(const CountedExchange& exchange);
  // Clears the results of the last client, after a reset of every environment.
  void Clear();
  // The last reward, and the return until an episode has ended, are those of
  // the shown environments.
  RunSnapshot Now(std::span<const uint32_t> shown) const;
  // Of one environment's episode; after an end, of the next one. `number` is 0
  // in the episode that ran when this object was made; its steps and return
  // count from then.
  struct Episode {
    uint64_t number = 0;
    uint64_t steps = 0;
    double total_reward = 0;
    double last_reward = 0;
  };
  Episode EpisodeOf(uint32_t env) const {
    return {.number = numbers_[env],
            .steps = ticks_ - begins_[env],
            .total_reward = returns_[env],
            .last_reward = static_cast<double>(rewards_[env])};
  }
  uint64_t env_steps() const { return env_steps_; }

 private:
  static constexpr size_t kEpisodes = 100;

  void CountEnds(const CountedExchange& exchange);

  const bool has_rewards_;
  std::vector<double> returns_;  // of the running episodes
  std::vector<float> rewards_;   // of the last exchange
  // The value of ticks_ before an episode's first step. So a step costs nothing
  // for the lengths.
  std::vector<uint64_t> begins_;
  std::vector<uint64_t> numbers_;  // of the running episodes
  std::vector<uint8_t> over_;      // 1: counted; the episode continues
  bool any_over_ = false;
  std::array<double, kEpisodes> ended_{};    // returns; a ring
  std::array<double, kEpisodes> lengths_{};  // of the same episodes
  uint64_t ticks_ = 0;                       // exchanges with steps
  uint64_t episodes_ = 0;
  uint64_t env_steps_ = 0;
};

}  // namespace tandem

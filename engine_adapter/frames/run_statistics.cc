#include "engine_adapter/frames/run_statistics.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "schema/layout/lrbc.h"

namespace tandem {
namespace {

double MeanOf(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) /
         static_cast<double>(numbers.size());
}

bool AnySet(std::span<const uint8_t> flags) {
  return flags[0] != 0 ||
         std::memcmp(flags.data(), flags.data() + 1, flags.size() - 1) != 0;
}

}  // namespace

void RunStatistics::Count(const CountedExchange& exchange) {
  const size_t envs = returns_.size();
  const bool any_flag = AnySet(exchange.resets);
  if (exchange.stepped) {
    ++ticks_;
    for (size_t env = 0; env < envs; ++env) {
      if (any_flag && exchange.resets[env] == kSkip) continue;
      rewards_[env] = exchange.rewards[env];
      returns_[env] += static_cast<double>(exchange.rewards[env]);
      ++env_steps_;
    }
  }
  if (any_over_ || AnySet(exchange.dones) || any_flag) {
    CountEnds(exchange);
  }
}

void RunStatistics::CountEnds(const CountedExchange& exchange) {
  any_over_ = false;
  for (size_t env = 0; env < returns_.size(); ++env) {
    if (exchange.resets[env] == kSkip) {
      // Its rows, also dones, are as before.
      if (exchange.stepped) ++begins_[env];
    } else if (exchange.resets[env] != 0) {
      if (over_[env] == 0) ++numbers_[env];
      begins_[env] = ticks_;
      returns_[env] = 0;
      rewards_[env] = 0;
      over_[env] = 0;
    } else if (exchange.stepped && exchange.dones[env] == 0) {
      // The counted episode continued past its end; this step begins the next
      // one.
      if (over_[env] != 0) {
        returns_[env] = rewards_[env];
        begins_[env] = ticks_ - 1;
      }
      over_[env] = 0;
    } else if (exchange.stepped) {
      if (over_[env] == 0) {
        ++numbers_[env];
        const size_t at = episodes_++ % kEpisodes;
        ended_[at] = returns_[env];
        lengths_[at] = static_cast<double>(ticks_ - begins_[env]);
      }
      returns_[env] = 0;
      begins_[env] = ticks_;
      over_[env] = exchange.ended_are_reset ? 0 : 1;
    }
    any_over_ = any_over_ || over_[env] != 0;
  }
}

void RunStatistics::Clear() {
  std::ranges::fill(returns_, 0.0);
  std::ranges::fill(rewards_, 0.0F);
  std::ranges::fill(over_, uint8_t{0});
  std::ranges::fill(begins_, ticks_);
  for (uint64_t& number : numbers_) ++number;
  any_over_ = false;
  episodes_ = 0;
}

RunSnapshot RunStatistics::Now(std::span<const uint32_t> shown) const {
  RunSnapshot now = {.episodes = episodes_};
  double so_far = 0;
  for (const uint32_t env : shown) {
    now.last_reward += static_cast<double>(rewards_[env]);
    so_far += returns_[env];
  }
  const auto count = static_cast<double>(shown.size());
  now.last_reward /= count;
  const size_t ended =
      static_cast<size_t>(std::min<uint64_t>(episodes_, kEpisodes));
  if (ended == 0) {
    now.rolling_return = so_far / count;
  } else {
    now.rolling_return = MeanOf(std::span(ended_).first(ended));
    now.episode_length = MeanOf(std::span(lengths_).first(ended));
  }
  if (!has_rewards_) {
    now.last_reward = now.rolling_return =
        std::numeric_limits<double>::quiet_NaN();
  }
  return now;
}

}  // namespace tandem

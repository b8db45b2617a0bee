#include "engine_adapter/reference/counter_engine.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tandem {

CounterEngine::CounterEngine(const Options& options)
    : options_(options),
      schema_({.task = "Counter",
               .num_envs = options.num_envs,
               .obs_size = options.obs_size,
               .act_size = options.act_size}),
      envs_(options.num_envs) {
  std::random_device entropy;
  for (Env& env : envs_) env.random.seed(entropy());
}

absl::Status CounterEngine::Reset(std::span<const ResetRequest> requests,
                                  const ResetIo& io) {
  for (const ResetRequest& request : requests) {
    Env& env = envs_[request.env];
    if (request.seed) {
      env.random.seed(*request.seed);
      env.seed_steps = 0;
    }
    // 24 bits; a float represents them exactly.
    env.episode_number = static_cast<float>(env.random() >> 40) / (1 << 24);
    env.episode_steps = 0;
    Observe(env, 0, 0,
            io.obs.subspan(size_t{request.env} * schema_.obs_size,
                           schema_.obs_size));
  }
  return absl::OkStatus();
}

absl::Status CounterEngine::Step(std::span<const uint32_t> envs,
                                 const StepIo& io) {
  for (const uint32_t i : envs) {
    Env& env = envs_[i];
    const std::span<const float> actions =
        io.actions.subspan(size_t{i} * schema_.act_size, schema_.act_size);
    const float first = actions[0];
    const float sum = std::accumulate(actions.begin(), actions.end(), 0.0F);
    ++env.episode_steps;
    ++env.seed_steps;
    io.rewards[i] = sum;
    io.terminateds[i] = env.episode_steps == options_.terminate_after ? 1 : 0;
    io.truncateds[i] = env.episode_steps == options_.truncate_after ? 1 : 0;
    Observe(env, first, sum,
            io.obs.subspan(size_t{i} * schema_.obs_size, schema_.obs_size));
  }
  return absl::OkStatus();
}

void CounterEngine::Observe(const Env& env, float first_action,
                            float action_sum, std::span<float> obs) const {
  const std::array<float, 4> head = {
      static_cast<float>(env.episode_steps), first_action,
      static_cast<float>(env.seed_steps), env.episode_number};
  const size_t known = std::min(head.size(), obs.size());
  std::copy_n(head.begin(), known, obs.begin());
  for (size_t k = known; k < obs.size(); ++k) {
    obs[k] = action_sum + static_cast<float>(k);
  }
}

}  // namespace tandem

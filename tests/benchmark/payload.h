// The payload of every row of the benchmark, and the trivial work that its
// engine does.
//
// Data flow: actions -> TrivialWork (the engine) -> obs, rewards, dones ->
// ReadResults (the client).
// Ownership: the memory is the caller's; these are views.
//
//   Payload payload(size, memory);
//   TrivialWork(size, payload.actions, payload.obs, payload.rewards,
//               payload.dones);

#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

struct Size {
  uint32_t envs = 0;
  uint32_t obs = 0;  // floats per environment
  uint32_t act = 0;

  size_t action_floats() const { return size_t{envs} * act; }
  size_t obs_floats() const { return size_t{envs} * obs; }
};

// Computes one environment's results: the reward is the sum of the actions, the
// observation a ramp from it. Out of line, so that all rows execute the same
// code.
float StepOne(const Size& size, const float* action, float* obs);

inline void TrivialWork(const Size& size, const float* actions, float* obs,
                        float* rewards, uint8_t* dones) {
  for (uint32_t env = 0; env < size.envs; ++env) {
    rewards[env] = StepOne(size, actions + size_t{env} * size.act,
                           obs + size_t{env} * size.obs);
    dones[env] = 0;
  }
}

// Views of a step's results.
struct Results {
  const float* obs;
  const float* rewards;
  const uint8_t* dones;
};

// Reads every value once, as a policy does. Returns their sum, so that the
// compiler keeps the reads.
inline float ReadResults(const Size& size, const Results& results) {
  // Independent sums, which compilers vectorise.
  float sums[16] = {};
  const size_t floats = size.obs_floats();
  size_t at = 0;
  for (; at + 16 <= floats; at += 16) {
    for (size_t lane = 0; lane < 16; ++lane) {
      sums[lane] += results.obs[at + lane];
    }
  }
  for (; at < floats; ++at) sums[0] += results.obs[at];
  uint32_t dones = 0;
  for (uint32_t env = 0; env < size.envs; ++env) {
    sums[1] += results.rewards[env];
    dones += results.dones[env];
  }
  float sum = static_cast<float>(dones);
  for (const float part : sums) sum += part;
  return sum;
}

// Returns the last environment's reward. Actions are small whole numbers, so
// that sums are exact.
inline float LastReward(const Size& size, const float* actions) {
  float sum = 0;
  for (size_t i = size.action_floats() - size.act; i < size.action_floats();
       ++i) {
    sum += actions[i];
  }
  return sum;
}

// Returns whether the results are those of the actions; checks the last
// environment.
inline bool AreResultsOf(const Size& size, const float* actions,
                         const Results& results) {
  const size_t last = size.envs - 1;
  const float sum = LastReward(size, actions);
  return results.rewards[last] == sum && results.dones[last] == 0 &&
         results.obs[size.obs_floats() - 1] ==
             sum + static_cast<float>(size.obs - 1);
}

// Places the arrays of a payload in one block of memory, each on its own cache
// lines.
struct Payload {
  static constexpr size_t kAlignment = 128;

  Payload(const Size& size, void* memory) {
    auto* at = static_cast<std::byte*>(memory);
    const auto take = [&](size_t bytes) {
      std::byte* const taken = at;
      at += RoundUp(bytes);
      return taken;
    };
    actions = reinterpret_cast<float*>(take(size.action_floats() * 4));
    obs = reinterpret_cast<float*>(take(size.obs_floats() * 4));
    rewards = reinterpret_cast<float*>(take(size_t{size.envs} * 4));
    dones = reinterpret_cast<uint8_t*>(take(size.envs));
  }

  static size_t Bytes(const Size& size) {
    return RoundUp(size.action_floats() * 4) + RoundUp(size.obs_floats() * 4) +
           RoundUp(size_t{size.envs} * 4) + RoundUp(size.envs);
  }

  Results results() const { return {obs, rewards, dones}; }

  float* actions;
  float* obs;
  float* rewards;
  uint8_t* dones;

 private:
  static size_t RoundUp(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
};

}  // namespace tandem

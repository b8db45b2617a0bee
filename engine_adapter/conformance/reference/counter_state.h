// CounterState: the state of CounterEngine's environments, which the engine and
// its ports share.
//
// Data flow: steps, resets and the ports' commands -> CounterState -> results,
// and the ports' answers.
// Ownership: the engine owns it; the stepping thread uses it.
//
//   CounterState state(/*num_envs=*/4, /*act_size=*/2);
//   const CounterPlace place = state.envs[3].place();

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "engine_adapter/core/env_random.h"

namespace tandem {

// Metres: x to the right, y upwards, z towards the camera.
struct CounterPlace {
  float x = 0;
  float y = 0;
  float z = 0;
};

struct CounterState {
  // A contract: at each reset the counter starts at another place.
  struct StartNoise {
    std::array<float, 3> metres = {};  // standard deviation along each axis
    EnvRandom random = EnvRandom(0);

    // For saved states.
    template <typename Bytes, typename Noise>
    static void Transfer(Bytes& bytes, Noise& noise) {
      bytes.Values(noise.metres, noise.random);
    }
  };

  struct Env {
    std::mt19937_64 random;
    float episode_number = 0;  // obs[3]
    uint32_t episode_steps = 0;
    uint32_t seed_steps = 0;
    std::map<uint32_t, float> controls;  // for the next step, by actuator
    CounterPlace start;                  // of the counter, in this episode
    std::optional<StartNoise> noise;     // for later episodes

    // Each step moves the counter one metre to the right.
    CounterPlace place() const {
      return {.x = start.x + static_cast<float>(episode_steps),
              .y = start.y,
              .z = start.z};
    }
  };

  CounterState(uint32_t num_envs, uint32_t num_actions)
      : act_size(num_actions),
        envs(num_envs),
        actions(size_t{num_envs} * num_actions) {}

  std::span<float> ActionsOf(uint32_t env) {
    return std::span(actions).subspan(size_t{env} * act_size, act_size);
  }

  uint32_t act_size;
  std::vector<Env> envs;
  // [num_envs, act_size]: the last step's; 0 after a reset. A copy, since the
  // client can write to the region's actions at any time.
  std::vector<float> actions;
};

}  // namespace tandem

// Steps of HalfCheetah-v5 by the engine alone, without a region:
//   bazel run //engine_adapter/mujoco:mujoco_engine_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine_adapter/core/engine.h"
#include "engine_adapter/mujoco/half_cheetah.h"
#include "engine_adapter/mujoco/mujoco_engine.h"
#include "engine_adapter/mujoco/mujoco_log.h"

namespace tandem {
namespace {

void BM_HalfCheetahStep(benchmark::State& state) {
  InstallMujocoLog(nullptr);
  const auto num_envs = static_cast<uint32_t>(state.range(0));
  const auto engine =
      MujocoEngine::Create(HalfCheetah::Create({}).value(), num_envs,
                           static_cast<int>(state.range(1)))
          .value();
  std::vector<float> obs(size_t{num_envs} * 17);
  std::vector<float> actions(size_t{num_envs} * 6);
  std::vector<float> rewards(num_envs);
  std::vector<uint8_t> terminateds(num_envs);
  std::vector<uint8_t> truncateds(num_envs);
  std::vector<uint32_t> all;
  std::vector<ResetRequest> requests;
  for (uint32_t i = 0; i < num_envs; ++i) {
    all.push_back(i);
    requests.push_back({.env = i, .seed = i});
  }
  std::mt19937 random(0);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& action : actions) action = uniform(random);
  const StepIo io = {.actions = actions,
                     .obs = obs,
                     .rewards = rewards,
                     .terminateds = terminateds,
                     .truncateds = truncateds};
  if (!engine->Reset(requests, {obs, {}}).ok())
    state.SkipWithError("reset failed");
  for ([[maybe_unused]] const auto _ : state) {
    // A different action each time, at no cost worth measuring.
    std::swap(actions.front(), actions[random() % actions.size()]);
    if (!engine->Step(all, io).ok()) state.SkipWithError("step failed");
  }
  state.counters["env_steps"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * num_envs,
                         benchmark::Counter::kIsRate);
}

BENCHMARK(BM_HalfCheetahStep)
    ->ArgNames({"envs", "threads"})
    ->Args({1, 1})
    ->Args({64, 1})
    ->Args({64, 2})
    ->Args({64, 4})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

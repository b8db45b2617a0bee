// Measures steps of the engine alone, without a region:
//   bazel run //engine_adapter/mujoco:mujoco_tasks_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

void Steps(benchmark::State& state, const std::string& task) {
  InstallMujocoLog(nullptr);
  EngineRig rig(
      MakeMujocoEngine(task, {.num_envs = static_cast<uint32_t>(state.range(0)),
                              .threads = static_cast<int>(state.range(1))})
          .value());
  std::mt19937 random(0);
  std::uniform_real_distribution<float> uniform(-0.4F, 0.4F);
  for (float& action : rig.actions) action = uniform(random);
  if (!rig.ResetAll(0).ok()) state.SkipWithError("reset failed");
  for ([[maybe_unused]] const auto _ : state) {
    // A different action in each step, at negligible cost.
    std::swap(rig.actions.front(), rig.actions[random() % rig.actions.size()]);
    if (!rig.Step().ok()) state.SkipWithError("step failed");
  }
  state.counters["env_steps"] = benchmark::Counter(
      static_cast<double>(state.iterations() * state.range(0)),
      benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(Steps, HalfCheetah, std::string("HalfCheetah-v5"))
    ->ArgNames({"envs", "threads"})
    ->Args({1, 1})
    ->Args({64, 1})
    ->Args({64, 2})
    ->Args({64, 4})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Steps, Humanoid, std::string("Humanoid-v5"))
    ->ArgNames({"envs", "threads"})
    ->Args({64, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

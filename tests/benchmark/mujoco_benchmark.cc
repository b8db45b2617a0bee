// The lower limit of the MuJoCo rows: only mj_step, on some threads.
//
//   TANDEM_BENCHMARK_ASSETS=FOLDER mujoco_benchmark --benchmark_filter=Ant-v5
//
// FOLDER has Gymnasium's models. A benchmark TASK/ENVS steps ENVS environments
// on two threads; each thread has half of them, and does not wait for the
// other. A step is a random action and five times mj_step. An environment that
// has fallen or reached its time limit is reset, since another posture has
// another cost. There are no observations, rewards, infos and checks.
#include <benchmark/benchmark.h>
#include <mujoco/mujoco.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/benchmark/or_exit.h"

namespace tandem {
namespace {

constexpr int kThreads = 2;
constexpr int kFrameSkip = 5;
constexpr int kMaxEpisodeSteps = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Task {
  const char* name;
  const char* file;
  double lowest;  // height at which an episode ends
  double highest;
};

constexpr Task kTasks[] = {
    {"HalfCheetah-v5", "half_cheetah.xml", -kInfinity, kInfinity},
    {"Ant-v5", "ant.xml", 0.2, 1},
    {"Humanoid-v5", "humanoid.xml", 1, 2},
};

struct Env {
  std::unique_ptr<mjData, void (*)(mjData*)> data;
  int steps = 0;
};

void Steps(benchmark::State& state, const Task& task, int envs) {
  const char* const assets = std::getenv("TANDEM_BENCHMARK_ASSETS");
  Require(assets != nullptr, "expected TANDEM_BENCHMARK_ASSETS, a folder");
  char error[1000] = "";
  const std::unique_ptr<mjModel, void (*)(mjModel*)> model(
      mj_loadXML(absl::StrCat(assets, "/", task.file).c_str(), nullptr, error,
                 sizeof(error)),
      mj_deleteModel);
  Require(model != nullptr, error);
  std::vector<Env> mine;
  for (int i = 0; i < envs / state.threads(); ++i) {
    mine.push_back({{mj_makeData(model.get()), mj_deleteData}});
  }
  std::mt19937 random(static_cast<unsigned>(state.thread_index()));
  std::uniform_real_distribution<double> share(0, 1);
  for ([[maybe_unused]] const auto _ : state) {
    for (Env& env : mine) {
      mjData* const data = env.data.get();
      for (mjtSize i = 0; i < model->nu; ++i) {
        const mjtNum* const range = model->actuator_ctrlrange + 2 * i;
        data->ctrl[i] = range[0] + share(random) * (range[1] - range[0]);
      }
      for (int i = 0; i < kFrameSkip; ++i) mj_step(model.get(), data);
      const double height = data->qpos[2];
      if (++env.steps == kMaxEpisodeSteps || height < task.lowest ||
          height > task.highest) {
        mj_resetData(model.get(), data);
        env.steps = 0;
      }
    }
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(mine.size()));
}

void Register() {
  for (const Task& task : kTasks) {
    for (const int envs : {1, 8, 64, 512}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(task.name, "/", envs).c_str(),
          [&task, envs](benchmark::State& state) { Steps(state, task, envs); })
          ->Threads(envs == 1 ? 1 : kThreads)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

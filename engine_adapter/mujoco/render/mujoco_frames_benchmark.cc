// Costs of images, without a region: rendering by size and effect, and the
// stepping thread's copy of an environment.
//   bazel run //engine_adapter/mujoco/render:mujoco_frames_benchmark
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/frames/frame_grid.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

constexpr FrameEffects kNone = {};
constexpr FrameEffects kShadows = {.shadows = true};
constexpr FrameEffects kReflections = {.reflections = true};
constexpr FrameEffects kMultisampling = {.multisampling = true};
constexpr FrameEffects kAll = {
    .shadows = true, .reflections = true, .multisampling = true};

// One environment of the task, at an episode's start, ready to render.
class Image {
 public:
  Image(const std::string& task, const FrameOptions& options)
      : Image(Made(task), options) {}
  FrameSource& source() { return *source_; }
  absl::Status Draw() { return source_->Draw(0, grid_.Tile(frame_, 0)); }

 private:
  static std::unique_ptr<Engine> Made(const std::string& task) {
    InstallMujocoLog(nullptr);
    return MakeMujocoEngine(task, {}).value();
  }
  Image(std::unique_ptr<Engine> engine, const FrameOptions& options)
      : source_(engine->frames()),
        rig_(std::move(engine)),
        grid_(FrameGrid::Of(options)),
        frame_(grid_.FrameBytes()) {
    status_ = rig_.ResetAll(0);
    status_.Update(source_->Prepare(options));
    source_->Capture(0);
  }

  FrameSource* source_;
  EngineRig rig_;
  FrameGrid grid_;
  std::vector<std::byte> frame_;
  absl::Status status_;
};

void Draw(benchmark::State& state, const std::string& task,
          const FrameEffects& effects) {
  Image image(task, {.width = static_cast<uint32_t>(state.range(0)),
                     .height = static_cast<uint32_t>(state.range(1)),
                     .envs = {0},
                     .effects = effects});
  if (!image.source().Start().ok() || !image.Draw().ok()) {
    state.SkipWithError("this machine draws nothing");
  }
  for ([[maybe_unused]] const auto _ : state) {
    if (!image.Draw().ok()) state.SkipWithError("not drawn");
  }
  state.counters["images"] = benchmark::Counter(
      static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  image.source().Stop();
}

void Capture(benchmark::State& state, const std::string& task) {
  Image image(task, {.width = 1, .height = 1, .envs = {0}});
  for ([[maybe_unused]] const auto _ : state) image.source().Capture(0);
}

void Sizes(benchmark::internal::Benchmark* row) {
  row->ArgNames({"width", "height"})
      ->Args({84, 84})
      ->Args({160, 120})
      ->Args({320, 240})
      ->Args({480, 480})
      ->Args({640, 480})
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond);
}

void OneSize(benchmark::internal::Benchmark* row) {
  row->ArgNames({"width", "height"})
      ->Args({320, 240})
      ->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(Draw, HalfCheetah, "HalfCheetah-v5", kNone)->Apply(Sizes);
BENCHMARK_CAPTURE(Draw, HalfCheetah_all, "HalfCheetah-v5", kAll)->Apply(Sizes);
BENCHMARK_CAPTURE(Draw, HalfCheetah_shadows, "HalfCheetah-v5", kShadows)
    ->Apply(OneSize);
BENCHMARK_CAPTURE(Draw, HalfCheetah_reflections, "HalfCheetah-v5", kReflections)
    ->Apply(OneSize);
BENCHMARK_CAPTURE(Draw, HalfCheetah_multisampling, "HalfCheetah-v5",
                  kMultisampling)
    ->Apply(OneSize);
BENCHMARK_CAPTURE(Draw, Humanoid, "Humanoid-v5", kNone)->Apply(OneSize);
BENCHMARK_CAPTURE(Capture, HalfCheetah, "HalfCheetah-v5")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Capture, Humanoid, "Humanoid-v5")
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

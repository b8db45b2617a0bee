// What frames cost the thread that steps while no viewer looks, for an
// exchange:
//   bazel run //engine_adapter/frames:frame_thread_benchmark
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frames/frame_options.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/frames/frame_thread.h"
#include "transport/frames/frame_writer.h"
#include "transport/memory/frame_geometry.h"

namespace tandem {
namespace {

class NeverDrawn final : public FrameSource {
 public:
  absl::Status Prepare(const FrameOptions& /*options*/) override { return {}; }
  void Capture(uint32_t /*place*/) override { std::abort(); }
  absl::Status Start() override { std::abort(); }
  absl::Status Draw(uint32_t, const FrameTile&) override { std::abort(); }
  void Stop() override {}
};

void Unseen(benchmark::State& state) {
  const auto envs = static_cast<uint32_t>(state.range(0));
  const FrameOptions options = {.width = 8, .height = 8, .envs = {0}};
  const FrameGeometry geometry =
      WithAlignedSlots({.width = 8,
                        .height = 8,
                        .metadata_bytes = FrameThread::MetadataBytes(options)});
  std::vector<uint64_t> ring(*FrameWriter::RingBytes(geometry) / 8 + 1);
  FrameWriter writer =
      *FrameWriter::Create(std::as_writable_bytes(std::span(ring)), geometry);
  NeverDrawn source;
  FrameThread frames(&source, options, envs, std::move(writer),
                     {.watched = [] { return false; },
                      .wake_step_thread = [] {},
                      .answer = [](uint32_t) {},
                      .log = [](absl::string_view) {}});
  const std::vector<uint8_t> none(envs);
  const std::vector<float> rewards(envs, 1);
  uint64_t step = 0;
  for ([[maybe_unused]] const auto _ : state) {
    frames.Count({.resets = none, .rewards = rewards, .dones = none});
    frames.Serve(++step, 0);
  }
}

BENCHMARK(Unseen)->ArgName("envs")->Arg(1)->Arg(64)->Arg(1024)->Arg(16384);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

// Frames into a ring's slots, by each way to write them.
//
//   frames_benchmark --benchmark_filter='^publish/640/480/8$'
//
// `publish` and `loan` (memcpy fills a reserved slot) of a FrameWriter in a
// segment; `memcpy` and `streaming` (non-temporal stores) into the same slots
// without a ring. The arguments are width, height and slots. The environment
// variable TANDEM_BENCHMARK_NAME names the segment.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/clock.h"
#include "tests/benchmark/or_exit.h"
#include "transport/frames/racy_copy.h"
#include "transport/owned_frame_segment.h"

namespace tandem {
namespace {

constexpr FrameMetrics kMetrics = {
    .last_reward = 1, .rolling_return = 2, .step_rate_hz = 3};
constexpr char kMetadata[] = R"({"step":123456,"envs":[0,1,2,3]})";

enum class Way { kPublish, kLoan, kMemcpy, kStreaming };

template <Way kWay>
void Write(benchmark::State& state) {
  const FrameGeometry geometry = {
      .width = static_cast<uint32_t>(state.range(0)),
      .height = static_cast<uint32_t>(state.range(1)),
      .capacity = static_cast<uint32_t>(state.range(2)),
      .metadata_bytes = 64};
  const char* const name = std::getenv("TANDEM_BENCHMARK_NAME");
  OwnedFrameSegment segment = Got(OwnedFrameSegment::Create(
      name == nullptr ? "frames-benchmark" : name, geometry));
  FrameWriter& writer = segment.writer();
  std::vector<std::span<std::byte>> slots;
  for (uint32_t i = 0; i < geometry.capacity; ++i) {
    slots.push_back(writer.Reserve());
    writer.Commit({}, "");
  }
  const std::vector<std::byte> frame(geometry.FrameBytes(), std::byte{7});
  [[maybe_unused]] size_t stored = 0;
  const auto write = [&] {
    if constexpr (kWay == Way::kPublish) {
      writer.Publish(frame, kMetrics, kMetadata);
    } else if constexpr (kWay == Way::kLoan) {
      std::memcpy(writer.Reserve().data(), frame.data(), frame.size());
      writer.Commit(kMetrics, kMetadata);
    } else {
      constexpr Cache kCache =
          kWay == Way::kMemcpy ? Cache::kInto : Cache::kPast;
      RacyCopy(slots[stored++ % slots.size()], frame, kCache);
      if (kCache == Cache::kPast) StoresBefore();
    }
  };
  // Fills the cache as it is when only this row writes.
  for (size_t i = 0; i < 4 * slots.size(); ++i) write();
  for ([[maybe_unused]] const auto _ : state) write();
  state.SetItemsProcessed(state.iterations());
  std::vector<double> micros(4000);
  for (double& each : micros) {
    const int64_t begin = MonotonicNanos();
    write();
    each = static_cast<double>(MonotonicNanos() - begin) / 1e3;
  }
  std::sort(micros.begin(), micros.end());
  state.counters["p50 us"] = micros[micros.size() / 2];
  state.counters["p99 us"] = micros[micros.size() * 99 / 100];
}

void Rings(benchmark::internal::Benchmark* benchmark) {
  for (const int slots : {8, 128}) benchmark->Args({84, 84, slots});
  for (const int slots : {8, 32}) benchmark->Args({640, 480, slots});
  benchmark->Args({1920, 1080, 4})->UseRealTime();
}

BENCHMARK(Write<Way::kPublish>)->Name("publish")->Apply(Rings);
BENCHMARK(Write<Way::kLoan>)->Name("loan")->Apply(Rings);
BENCHMARK(Write<Way::kMemcpy>)->Name("memcpy")->Apply(Rings);
BENCHMARK(Write<Way::kStreaming>)->Name("streaming")->Apply(Rings);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

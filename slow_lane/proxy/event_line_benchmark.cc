// Measures the conversion of a line to a message on an arena:
//   bazel run //slow_lane/proxy:event_line_benchmark
//
// Each iteration parses 256 KiB of lines into a new arena; items are lines.
// Collect reads them from a file as the proxy does. CollectAndSerialize also
// makes the bytes for the daemon.
#include <benchmark/benchmark.h>
#include <google/protobuf/arena.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_collector.h"
#include "slow_lane/proxy/event_line.h"
#include "slow_lane/proxy/line_tail.h"

namespace tandem::slow_lane {
namespace {

// The seed's step, compact as Python's json prints it with its separators set.
constexpr char kShort[] =
    R"({"event_type": "step", "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", )"
    R"("episode": 0, "step_index": 42, "action": 1, )"
    R"("observation": [0.02, -0.01, 0.03, -0.02], "reward": 1.0, )"
    R"("terminated": false, "truncated": false})";

// A line of 1 KiB, with an observation of many numbers.
std::string LongLine() {
  std::string line = kShort;
  const size_t place = line.find("-0.02]") + 5;
  std::string numbers;
  for (int i = 0; line.size() + numbers.size() < 1000; ++i) {
    absl::StrAppend(&numbers, ", ", i % 2 == 0 ? "-" : "", "0.0",
                    1234567 + i * 7919);
  }
  return line.insert(place, numbers);
}

std::string LineOf(const benchmark::State& state) {
  return state.range(0) == 0 ? kShort : LongLine();
}

void SetCounters(benchmark::State& state, size_t lines, size_t line_bytes) {
  const auto count = static_cast<int64_t>(lines) * state.iterations();
  state.SetItemsProcessed(count);
  state.SetBytesProcessed(count * static_cast<int64_t>(line_bytes));
}

void Parse(benchmark::State& state) {
  const std::string line = LineOf(state);
  const std::string padded =
      line + std::string(EventLineParser::kPaddingBytes, ' ');
  const size_t lines = EventCollector::kBatchBytes / line.size();
  EventLineParser parser;
  for ([[maybe_unused]] const auto _ : state) {
    google::protobuf::Arena arena;
    auto* const batch =
        google::protobuf::Arena::CreateMessage<v1::EventBatch>(&arena);
    for (size_t i = 0; i < lines; ++i) {
      if (parser.Parse({padded.data(), line.size()}, batch) !=
          LineKind::kStep) {
        std::abort();
      }
    }
    benchmark::DoNotOptimize(batch);
  }
  SetCounters(state, lines, line.size());
}

void CollectLines(benchmark::State& state, bool serialize) {
  const std::string line = LineOf(state) + "\n";
  const size_t lines = EventCollector::kBatchBytes / line.size();
  std::string output;
  for (size_t i = 0; i < lines; ++i) output += line;
  const UniqueFd file(memfd_create("event_line_benchmark", MFD_CLOEXEC));
  if (pwrite(file.get(), output.data(), output.size(), 0) !=
      static_cast<ssize_t>(output.size())) {
    std::abort();
  }
  std::string bytes;
  for ([[maybe_unused]] const auto _ : state) {
    state.PauseTiming();
    EventCollector collector(
        LineTail(UniqueFd(dup(file.get())), "the output", 0), {}, 1);
    state.ResumeTiming();
    google::protobuf::Arena arena;
    auto* const batch =
        google::protobuf::Arena::CreateMessage<v1::EventBatch>(&arena);
    if (!*collector.Collect(batch)) std::abort();
    if (serialize) batch->SerializeToString(&bytes);
    benchmark::DoNotOptimize(batch);
  }
  SetCounters(state, lines, line.size());
}

void Collect(benchmark::State& state) { CollectLines(state, false); }
void CollectAndSerialize(benchmark::State& state) { CollectLines(state, true); }

BENCHMARK(Parse)->ArgName("long")->Arg(0)->Arg(1);
BENCHMARK(Collect)->ArgName("long")->Arg(0)->Arg(1);
BENCHMARK(CollectAndSerialize)->ArgName("long")->Arg(0)->Arg(1);

}  // namespace
}  // namespace tandem::slow_lane

BENCHMARK_MAIN();

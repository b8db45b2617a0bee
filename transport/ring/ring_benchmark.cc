// Messages per second of 64 bytes from one thread to another, for the ring and
// for what one would write without it, in one run:
//
//   bazel run //transport/ring:ring_benchmark
//
// The last lines give the ratios. Both threads wait as a user's would (the ring
// by its adaptive Waiter); two idle cores are assumed.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "transport/base/clock.h"
#include "transport/ring/ring.h"
#include "transport/ring/ring_test_region.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

constexpr uint32_t kMessageBytes = 64;
constexpr uint32_t kMessages = 200'000;  // for each iteration
using Message = std::array<std::byte, kMessageBytes>;

class NoWatch : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

void Require(bool holds, benchmark::State& state) {
  if (!holds) state.SkipWithError("a message was lost");
}

// Runs `write` and `read` in a thread each, kMessages times an iteration.
template <typename Write, typename Read>
void Transfer(benchmark::State& state, Write write, Read read) {
  for (auto _ : state) {
    std::thread writing([&] {
      Message message{};
      for (uint32_t i = 0; i < kMessages; ++i) {
        message[0] = static_cast<std::byte>(i);
        write(message);
      }
    });
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < kMessages; ++i) {
      wrong += read() != static_cast<std::byte>(i);
    }
    writing.join();
    Require(wrong == 0, state);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kMessages);
}

void Ring(benchmark::State& state) {
  TestRegion region(kDefaultRingBytes);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  Waiter writing(region.writer_bell(), WaitStrategy::kAdaptive);
  Waiter reading(region.reader_bell(), WaitStrategy::kAdaptive);
  NoWatch watch;
  Message buffer;
  Transfer(
      state,
      [&](const Message& message) {
        (void)writer.Write(message, Deadline::Infinite(), writing, watch);
      },
      [&] {
        size_t bytes = 0;
        (void)reader.Read(buffer, &bytes, Deadline::Infinite(), reading, watch);
        return bytes == kMessageBytes ? buffer[0] : ~buffer[0];
      });
}

// As long as the ring's, so that it waits for room as often.
void MutexAndDeque(benchmark::State& state) {
  constexpr size_t kMost = kDefaultRingBytes / (kMessageBytes + 8);
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<std::byte>> queue;
  Transfer(
      state,
      [&](const Message& message) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return queue.size() < kMost; });
        queue.emplace_back(message.begin(), message.end());
        changed.notify_one();
      },
      [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        const std::byte first = queue.front()[0];
        queue.pop_front();
        changed.notify_one();
        return first;
      });
}

void Pipe(benchmark::State& state) {
  int ends[2];
  if (pipe(ends) != 0) {
    state.SkipWithError("pipe");
    return;
  }
  Message buffer;
  Transfer(
      state,
      [&](const Message& message) {
        Require(write(ends[1], message.data(), message.size()) ==
                    static_cast<ssize_t>(message.size()),
                state);
      },
      [&] {
        Require(read(ends[0], buffer.data(), buffer.size()) ==
                    static_cast<ssize_t>(buffer.size()),
                state);
        return buffer[0];
      });
  close(ends[0]);
  close(ends[1]);
}

// One thread, no waiting: what a message costs in instructions.
void RingWithinOneThread(benchmark::State& state) {
  TestRegion region(kDefaultRingBytes);
  RingWriter writer = region.Writer();
  RingReader reader = region.Reader();
  const Message message{};
  Message buffer;
  size_t bytes = 0;
  for (auto _ : state) {
    (void)writer.TryWrite(message);
    (void)reader.TryRead(buffer, &bytes);
    benchmark::DoNotOptimize(buffer);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

BENCHMARK(Ring)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MutexAndDeque)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Pipe)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(RingWithinOneThread);

// The console's report; keeps the best rate of each benchmark.
class RatioReporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      if (run.error_occurred || rate == run.counters.end()) continue;
      double& best = rates_[run.run_name.function_name];
      best = std::max<double>(best, rate->second);
    }
  }
  void PrintRatios() const {
    const auto ring = rates_.find("Ring");
    if (ring == rates_.end()) return;
    for (const auto& [name, rate] : rates_) {
      if (name == "Ring" || name == "RingWithinOneThread") continue;
      std::printf("Ring / %s: %.1f\n", name.c_str(), ring->second / rate);
    }
  }

 private:
  std::map<std::string, double> rates_;
};

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  tandem::RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.PrintRatios();
  return 0;
}

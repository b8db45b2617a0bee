// Messages of 64 bytes between two threads, one way (a stream) and there and
// back (a call), by the ring and by what one would write without it, in one
// run:
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
#include <cstdlib>
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

// Bounces a message: `state`'s thread sends by `there` and receives by `back`,
// another thread the other way round, until it gets a message that starts with
// 1.
template <typename Channel>
void RoundTrip(benchmark::State& state, Channel& there, Channel& back) {
  std::thread echoing([&] {
    Message message{};
    do {
      message[0] = there.Receive();
      back.Send(message);
    } while (message[0] != std::byte{1});
  });
  Message message{};
  for (auto _ : state) {
    there.Send(message);
    Require(back.Receive() == message[0], state);
  }
  message[0] = std::byte{1};
  there.Send(message);
  (void)back.Receive();
  echoing.join();
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

// Each channel: Send from one thread, Receive (the first byte) in another.
class RingChannel {
 public:
  void Send(const Message& message) {
    (void)writer_.Write(message, Deadline::Infinite(), writing_, watch_);
  }
  std::byte Receive() {
    Message buffer;
    size_t bytes = 0;
    (void)reader_.Read(buffer, &bytes, Deadline::Infinite(), reading_, watch_);
    return bytes == kMessageBytes ? buffer[0] : std::byte{0xFF};
  }

 private:
  TestRegion region_{kDefaultRingBytes};
  RingWriter writer_ = region_.Writer();
  RingReader reader_ = region_.Reader();
  Waiter writing_{region_.writer_bell(), WaitStrategy::kAdaptive};
  Waiter reading_{region_.reader_bell(), WaitStrategy::kAdaptive};
  NoWatch watch_;
};

class MutexAndDequeChannel {
 public:
  void Send(const Message& message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.size() < kMost; });
    queue_.emplace_back(message.begin(), message.end());
    changed_.notify_one();
  }
  std::byte Receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty(); });
    const std::byte first = queue_.front()[0];
    queue_.pop_front();
    changed_.notify_one();
    return first;
  }

 private:
  // As long as the ring's, so that it waits for room as often.
  static constexpr size_t kMost = kDefaultRingBytes / (kMessageBytes + 8);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> queue_;
};

class PipeChannel {
 public:
  PipeChannel() {
    if (pipe(ends_) != 0) std::abort();
  }
  PipeChannel(const PipeChannel&) = delete;
  PipeChannel& operator=(const PipeChannel&) = delete;
  ~PipeChannel() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Send(const Message& message) {
    if (write(ends_[1], message.data(), message.size()) !=
        static_cast<ssize_t>(message.size())) {
      std::abort();
    }
  }
  std::byte Receive() {
    Message buffer;
    if (read(ends_[0], buffer.data(), buffer.size()) !=
        static_cast<ssize_t>(buffer.size())) {
      std::abort();
    }
    return buffer[0];
  }

 private:
  int ends_[2];
};

template <typename Channel>
void Throughput(benchmark::State& state) {
  Channel channel;
  Transfer(
      state, [&](const Message& message) { channel.Send(message); },
      [&] { return channel.Receive(); });
}

template <typename Channel>
void RoundTrip(benchmark::State& state) {
  Channel there;
  Channel back;
  RoundTrip(state, there, back);
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

BENCHMARK_TEMPLATE(Throughput, RingChannel)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(Throughput, MutexAndDequeChannel)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(Throughput, PipeChannel)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(RoundTrip, RingChannel)->UseRealTime();
BENCHMARK_TEMPLATE(RoundTrip, MutexAndDequeChannel)->UseRealTime();
BENCHMARK_TEMPLATE(RoundTrip, PipeChannel)->UseRealTime();
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
    for (const std::string what : {"Throughput", "RoundTrip"}) {
      const auto ring = rates_.find(what + "<RingChannel>");
      if (ring == rates_.end()) continue;
      for (const std::string peer : {"MutexAndDeque", "Pipe"}) {
        const auto rate = rates_.find(what + "<" + peer + "Channel>");
        if (rate == rates_.end()) continue;
        std::printf("%s, ring / %s: %.1f\n", what.c_str(), peer.c_str(),
                    ring->second / rate->second);
      }
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

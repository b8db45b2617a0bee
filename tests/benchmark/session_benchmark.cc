// What the two sides' calls cost by themselves: all in one thread, where each
// call finds what it waits for, and no cache line changes cores.
//
// Instructions of each call: run it under `valgrind --tool=callgrind` with
// --benchmark_filter=Exchange/1/ and divide what callgrind_annotate
// --inclusive=yes lists for a function by its calls.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/host/engine_host.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "tests/benchmark/payload.h"
#include "tests/end_to_end/still_engine.h"
#include "transport/base/clock.h"
#include "transport/memory/unique_region_name.h"
#include "transport/session/client_side.h"
#include "transport/session/engine_side.h"
#include "transport/session/phase_word.h"
#include "transport/session/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

Size SizeOf(const benchmark::State& state) {
  return {.envs = static_cast<uint32_t>(state.range(0)),
          .obs = static_cast<uint32_t>(state.range(1)),
          .act = static_cast<uint32_t>(state.range(2))};
}

// A session whose two sides this thread calls in turn.
struct Session {
  explicit Session(const Size& size) {
    const std::string name = UniqueRegionName("session-benchmark");
    absl::StatusOr<EngineSide> made = EngineSide::Create(name,
                                                         {.num_envs = size.envs,
                                                          .obs_size = size.obs,
                                                          .act_size = size.act,
                                                          .task = "benchmark"},
                                                         {});
    Require(made.ok());
    engine.emplace(*std::move(made));
    Require(engine->Open().ok());
    std::thread welcomer([this] {
      Require(engine->Next(Deadline::Infinite()) ==
              EngineEvent::kClientArrived);
      engine->Welcome(absl::OkStatus());
    });
    absl::StatusOr<ClientSide> attached = ClientSide::Attach(name, {});
    welcomer.join();
    Require(attached.ok());
    client.emplace(*std::move(attached));
  }

  std::optional<EngineSide> engine;
  std::optional<ClientSide> client;
};

void Exchange(benchmark::State& state) {
  const Size size = SizeOf(state);
  Session session(size);
  const std::vector<float> actions(size.action_floats(), 1.0F);
  for (auto _ : state) {
    Require(session.client->Send(actions) == ErrorCode::kOk);
    Require(session.engine->Next(Deadline::Now()) == EngineEvent::kExchange);
    session.engine->Publish();
    Require(session.client->Recv(Deadline::Now()) == ErrorCode::kOk);
  }
}
BENCHMARK(Exchange)->Args({1, 4, 1})->Args({64, 32, 8})->Args({4096, 100, 12});

// The same with an Engine, driven by an EngineHost.
void HostExchange(benchmark::State& state) {
  const Size size = SizeOf(state);
  StillEngine engine(size.envs, size.obs, size.act);
  EngineHost::Options options;
  options.name = UniqueRegionName("session-benchmark");
  absl::StatusOr<std::unique_ptr<EngineHost>> host =
      EngineHost::Create(&engine, options);
  Require(host.ok());
  std::thread welcomer([&] {
    while (!(*host)->Poll()) {
    }
  });
  absl::StatusOr<ClientSide> client = ClientSide::Attach(options.name, {});
  welcomer.join();
  Require(client.ok());
  const std::vector<float> actions(size.action_floats(), 1.0F);
  for (auto _ : state) {
    Require(client->Send(actions) == ErrorCode::kOk);
    Require((*host)->Poll());
    Require(client->Recv(Deadline::Now()) == ErrorCode::kOk);
  }
}
BENCHMARK(HostExchange)
    ->Args({1, 4, 1})
    ->Args({64, 32, 8})
    ->Args({4096, 100, 12});

// The ingredients of such a call. Words are a real header's.

void ReadTheClock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MonotonicNanos());
}
BENCHMARK(ReadTheClock);

void RingAnUnawaitedBell(benchmark::State& state) {
  const auto header = std::make_unique<LrbcHeader>();
  Doorbell bell(&header->engine_doorbell, &header->engine_sleepers);
  uint64_t seq = 0;
  for (auto _ : state) {
    header->action_seq.store(++seq, std::memory_order_release);
    bell.RingIfAwaited();
  }
}
BENCHMARK(RingAnUnawaitedBell);

void StoreAPhase(benchmark::State& state) {
  const auto header = std::make_unique<LrbcHeader>();
  int64_t now = 1;
  for (auto _ : state) {
    header->client_phase.store(PackPhase(Phase::kIdle, ++now),
                               std::memory_order_relaxed);
  }
}
BENCHMARK(StoreAPhase);

void RecordAStepTime(benchmark::State& state) {
  const auto header = std::make_unique<LrbcHeader>();
  uint64_t nanos = 300;
  for (auto _ : state) {
    RecordStepTime(&header->client_round_trips, nanos);
    nanos = (nanos * 5 + 77) & 4095;
  }
}
BENCHMARK(RecordAStepTime);

void GuardACall(benchmark::State& state) {
  const auto in_use = std::make_unique<std::atomic<bool>>(false);
  for (auto _ : state) {
    benchmark::DoNotOptimize(in_use->exchange(true, std::memory_order_acquire));
    in_use->store(false, std::memory_order_release);
  }
}
BENCHMARK(GuardACall);

void Pause(benchmark::State& state) {
  for (auto _ : state) Relax();
}
BENCHMARK(Pause);

}  // namespace
}  // namespace tandem

BENCHMARK_MAIN();

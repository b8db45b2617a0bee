// An engine server with a loop of its own, as a game engine has one: a step
// takes several ticks. Serves the reference engine.
#include <time.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/reference/counter_engine.h"
#include "engine_adapter/conformance/reference/counter_flags.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/server_main.h"

ABSL_FLAG(double, tick_hz, 60, "ticks per second; 0: as many as possible");
ABSL_FLAG(uint32_t, ticks_per_step, 3, "number of ticks that a step takes");

namespace tandem {
namespace {

constexpr char kUsage[] =
    "Serves environments that count their steps, from a loop with ticks.\n\n"
    "  ticked_server --num_envs 64 --tick_hz 60 --name demo";

void SleepUntil(int64_t time_ns) {
  const timespec time = {.tv_sec = time_ns / 1'000'000'000,
                         .tv_nsec = time_ns % 1'000'000'000};
  // A signal ends the sleep; the loop then finds the request to stop.
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

// The counter, as if it had a tick: it takes a step's actions in one tick, and
// writes the results some ticks later.
class TickedCounter final : public EngineBase {
 public:
  explicit TickedCounter(const CounterEngine::Options& options)
      : counter_(options) {}

  const EngineSchema& schema() const override { return counter_.schema(); }
  EnginePorts ports() override { return counter_.ports(); }
  void ClearClientState() override { counter_.ClearClientState(); }
  double step_secs() const override { return counter_.step_secs(); }

  // Serves until the host is stopped, or its region could not be opened.
  absl::Status Loop(EngineHost* host) {
    const double hz = absl::GetFlag(FLAGS_tick_hz);
    const int64_t period_ns = hz > 0 ? static_cast<int64_t>(1e9 / hz) : 0;
    for (int64_t tick_ns = MonotonicNanos(); !host->StopRequested();) {
      TANDEM_RETURN_IF_ERROR(Tick(host));
      tick_ns += period_ns;
      if (period_ns > 0) SleepUntil(tick_ns);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Tick(EngineHost* host) {
    if (step_ != nullptr && --ticks_left_ == 0) {
      const absl::Status result = counter_.Step(step_->steps, step_->step_io);
      step_ = nullptr;
      TANDEM_RETURN_IF_ERROR(host->Done(result));
    }
    // During a step this answers calls, and returns no work. Resets are done at
    // once; the next work may follow in the same tick.
    while (const EngineWork* const work = host->Next(Deadline::Now())) {
      if (!work->steps.empty()) {
        step_ = work;
        ticks_left_ = absl::GetFlag(FLAGS_ticks_per_step);
      } else {
        TANDEM_RETURN_IF_ERROR(
            host->Done(counter_.Reset(work->resets, work->reset_io)));
      }
    }
    return absl::OkStatus();
  }

  CounterEngine counter_;
  const EngineWork* step_ = nullptr;  // the step in progress
  uint32_t ticks_left_ = 0;           // until its results
};

absl::StatusOr<std::unique_ptr<TickedCounter>> Make(
    const ServerOptions& options) {
  if (absl::GetFlag(FLAGS_ticks_per_step) == 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "--ticks_per_step: expected 1 or more, found 0");
  }
  return std::make_unique<TickedCounter>(CounterOptions(options));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::TickedCounter* counter = nullptr;  // RunTickedServer owns it
  return tandem::RunTickedServer(
      argc, argv, tandem::kUsage,
      [&](const tandem::ServerOptions& options)
          -> absl::StatusOr<std::unique_ptr<tandem::EngineBase>> {
        TANDEM_ASSIGN_OR_RETURN(auto made, tandem::Make(options));
        counter = made.get();
        return std::unique_ptr<tandem::EngineBase>(std::move(made));
      },
      [&](tandem::EngineHost* host) { return counter->Loop(host); });
}

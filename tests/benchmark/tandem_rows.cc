// The rows host_spin, host_adaptive and host_block.
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/strip.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/row.h"
#include "transport/client_side.h"
#include "transport/step_arrays.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace {

constexpr double kTimeoutSecs = 30;

// The host that SIGTERM and SIGINT stop, in the engine's process. Writer: the
// serving thread; reader: its signal handler.
std::atomic<EngineHost*> serving_host{nullptr};
static_assert(std::atomic<EngineHost*>::is_always_lock_free);

void StopServing(int) {
  // relaxed: written by the thread that this handler interrupts.
  EngineHost* const host = serving_host.load(std::memory_order_relaxed);
  if (host != nullptr) host->RequestStop();
}

class TrivialEngine final : public Engine {
 public:
  explicit TrivialEngine(const Size& size)
      : size_(size),
        schema_{.task = "benchmark",
                .num_envs = size.envs,
                .obs_size = size.obs,
                .act_size = size.act} {}

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest>, const ResetIo&) override {
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t env : envs) {
      io.rewards[env] =
          StepOne(size_, io.actions.data() + size_t{env} * size_.act,
                  io.obs.data() + size_t{env} * size_.obs);
      io.terminateds[env] = 0;
      io.truncateds[env] = 0;
    }
    return absl::OkStatus();
  }

 private:
  Size size_;
  EngineSchema schema_;
};

class HostRow final : public Row {
 public:
  HostRow(const RowOptions& options, WaitStrategy wait)
      : options_(options), wait_(wait) {}

  void Serve() override {
    TrivialEngine engine(options_.size);
    EngineHost::Options options;
    options.name = options_.region;
    options.wait = wait_;
    const std::unique_ptr<EngineHost> host =
        Got(EngineHost::Create(&engine, std::move(options)));
    // relaxed: read by this thread's handler only.
    serving_host.store(host.get(), std::memory_order_relaxed);
    struct sigaction action = {};
    action.sa_handler = StopServing;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    host->Run();
    // relaxed: as above.
    serving_host.store(nullptr, std::memory_order_relaxed);
  }

  void Connect() override {
    client_.emplace(Got(ClientSide::Attach(
        options_.region, {.timeout_secs = kTimeoutSecs, .wait = wait_})));
  }

  Results Exchange(const float* actions) override {
    const ErrorCode code = client_->Step(
        std::span(actions, options_.size.action_floats()), kTimeoutSecs);
    if (code != ErrorCode::kOk) Fail(client_->Explain(code).message());
    const StepArrays& arrays = client_->arrays();
    return {arrays.obs.data(), arrays.rewards.data(), arrays.dones.data()};
  }

 private:
  RowOptions options_;
  WaitStrategy wait_;
  std::optional<ClientSide> client_;
};

}  // namespace

std::unique_ptr<Row> MakeTandemRow(absl::string_view name,
                                   const RowOptions& options) {
  if (!absl::ConsumePrefix(&name, "host_")) return nullptr;
  const std::optional<WaitStrategy> wait = WaitStrategyNamed(name);
  if (!wait) return nullptr;
  return std::make_unique<HostRow>(options, *wait);
}

}  // namespace tandem

#include "engine_adapter/core/environment_engine.h"

#include <exception>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/mutex.h"
#include "engine_adapter/core/state_bytes.h"

namespace tandem {

EnvironmentEngine::EnvironmentEngine(
    EngineSchema schema, std::vector<std::unique_ptr<Environment>> environments,
    int threads, EnvironmentFittings fittings)
    : schema_(std::move(schema)),
      info_size_(InfoSize(schema_.description)),
      fittings_(std::move(fittings)),
      pool_(threads) {
  schema_.num_envs = static_cast<uint32_t>(environments.size());
  std::random_device entropy;
  envs_.reserve(environments.size());
  for (std::unique_ptr<Environment>& environment : environments) {
    const uint64_t seed = uint64_t{entropy()} << 32 | entropy();
    envs_.push_back(
        {.environment = std::move(environment), .random = EnvRandom(seed)});
  }
}

void EnvironmentEngine::ClearClientState() {
  for (Env& env : envs_) {
    env.environment->ClearClientState();
    env.load = nullptr;
  }
  if (fittings_.debug != nullptr) fittings_.debug->Clear();
}

EnginePorts EnvironmentEngine::ports() {
  return {.randomization = fittings_.randomization.get(),
          .mujoco = fittings_.mujoco.get(),
          .scene = fittings_.scene.get(),
          .camera = fittings_.camera.get(),
          .debug = fittings_.debug.get(),
          .states = this};
}

absl::Status EnvironmentEngine::Save(uint32_t env, std::string* state) {
  StateWriter to(state);
  to.Values(envs_[env].random, envs_[env].steps);
  return envs_[env].environment->SaveState(&to);
}

absl::Status EnvironmentEngine::Stage(uint32_t env, absl::string_view state) {
  Env& target = envs_[env];
  StateReader from(state);
  EnvRandom random = target.random;
  uint32_t steps = 0;
  from.Values(random, steps);
  TANDEM_ASSIGN_OR_RETURN(std::function<void()> load,
                          target.environment->StageState(&from));
  TANDEM_RETURN_IF_ERROR(from.Finish());
  target.load = [&target, random, steps, load = std::move(load)] {
    target.random = random;
    target.steps = steps;
    load();
  };
  return absl::OkStatus();
}

absl::Status EnvironmentEngine::Reset(std::span<const ResetRequest> requests,
                                      const ResetIo& io) {
  auto reset = [&](uint32_t i) {
    const ResetRequest& request = requests[i];
    Guarded(request.env, [&] {
      Env& env = envs_[request.env];
      if (env.load) {
        std::exchange(env.load, nullptr)();
        return;
      }
      if (request.seed) env.random = EnvRandom(*request.seed);
      env.steps = 0;
      env.environment->Reset(env.random, Row(request.env, io.obs, io.infos));
    });
  };
  pool_.ParallelFor(static_cast<uint32_t>(requests.size()), reset);
  return TakeFailure();
}

absl::Status EnvironmentEngine::Step(std::span<const uint32_t> envs,
                                     const StepIo& io) {
  auto step = [&](uint32_t i) {
    Guarded(envs[i], [&] { StepOne(envs[i], io); });
  };
  pool_.ParallelFor(static_cast<uint32_t>(envs.size()), step);
  return TakeFailure();
}

void EnvironmentEngine::StepOne(uint32_t index, const StepIo& io) {
  Env& env = envs_[index];
  const StepOutcome outcome = env.environment->Step(
      io.actions.subspan(size_t{index} * schema_.act_size, schema_.act_size),
      Row(index, io.obs, io.infos));
  const uint32_t limit = schema_.description.max_episode_steps;
  if (limit == 0 || env.steps < limit) ++env.steps;
  io.rewards[index] = outcome.reward;
  io.terminateds[index] = outcome.terminated ? 1 : 0;
  io.truncateds[index] = limit != 0 && env.steps == limit ? 1 : 0;
}

EnvironmentRow EnvironmentEngine::Row(uint32_t env, std::span<float> obs,
                                      std::span<double> infos) const {
  return {obs.subspan(size_t{env} * schema_.obs_size, schema_.obs_size),
          infos.subspan(env * info_size_, info_size_)};
}

// Any thread of the pool may call this; so no exception may leave it.
template <typename Call>
void EnvironmentEngine::Guarded(uint32_t env, Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    MutexLock lock(&failure_mutex_);
    if (failures_++ == 0 || env < failed_env_) {
      failed_env_ = env;
      failure_ = error.what();
    }
  }
}

absl::Status EnvironmentEngine::TakeFailure() {
  MutexLock lock(&failure_mutex_);
  const uint32_t failures = std::exchange(failures_, 0);
  if (failures == 0) return absl::OkStatus();
  std::string text = absl::StrCat("environment ", failed_env_, ": ", failure_);
  if (failures > 1) absl::StrAppend(&text, " (and ", failures - 1, " more)");
  return MakeError(ErrorCode::kEngineFailed, text);
}

}  // namespace tandem

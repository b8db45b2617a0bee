#include "engine_adapter/mujoco/mujoco_engine.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/available_memory.h"
#include "transport/base/error.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<MujocoEngine>> MujocoEngine::Create(
    std::unique_ptr<Task> task, uint32_t num_envs, int threads) {
  std::random_device entropy;
  std::vector<Env> envs;
  for (uint32_t i = 0; i < num_envs; ++i) {
    absl::StatusOr<DataPtr> data = MakeData(task->model());
    if (!data.ok()) return data.status();
    // Before the first are many, and the kernel has to kill somebody.
    const uint64_t bytes = uint64_t{num_envs} * (*data)->nbuffer;
    if (i == 0 && bytes > AvailableMemoryBytes()) {
      return MakeError(
          ErrorCode::kOutOfSharedMemory,
          absl::StrCat(num_envs, " environments need ", bytes,
                       " bytes of memory, ", AvailableMemoryBytes(),
                       " are available; use fewer environments"));
    }
    const uint64_t seed = uint64_t{entropy()} << 32 | entropy();
    envs.push_back({.data = *std::move(data), .random = EnvRandom(seed)});
  }
  return std::unique_ptr<MujocoEngine>(
      new MujocoEngine(std::move(task), std::move(envs), threads));
}

MujocoEngine::MujocoEngine(std::unique_ptr<Task> task, std::vector<Env> envs,
                           int threads)
    : task_(std::move(task)),
      schema_({.task = task_->name(),
               .num_envs = static_cast<uint32_t>(envs.size()),
               .obs_size = task_->obs_size(),
               .act_size = static_cast<uint32_t>(task_->model().nu)}),
      envs_(std::move(envs)),
      pool_(threads) {}

absl::Status MujocoEngine::Reset(std::span<const ResetRequest> requests,
                                 const ResetIo& io) {
  auto reset = [&](uint32_t i) { ResetOne(requests[i], io.obs); };
  pool_.ParallelFor(static_cast<uint32_t>(requests.size()), reset);
  return TakeFailure();
}

absl::Status MujocoEngine::Step(std::span<const uint32_t> envs,
                                const StepIo& io) {
  auto step = [&](uint32_t i) { StepOne(envs[i], io); };
  pool_.ParallelFor(static_cast<uint32_t>(envs.size()), step);
  return TakeFailure();
}

void MujocoEngine::ResetOne(const ResetRequest& request, std::span<float> obs) {
  Guarded(request.env, [&] {
    Env& env = envs_[request.env];
    if (request.seed) env.random = EnvRandom(*request.seed);
    env.steps = 0;
    mj_resetData(&task_->model(), env.data.get());
    task_->Reset(env.data.get(), env.random);
    task_->Observe(
        *env.data,
        obs.subspan(size_t{request.env} * schema_.obs_size, schema_.obs_size));
  });
}

void MujocoEngine::StepOne(uint32_t index, const StepIo& io) {
  Guarded(index, [&] {
    Env& env = envs_[index];
    ApplyActions(
        io.actions.subspan(size_t{index} * schema_.act_size, schema_.act_size),
        env.data.get());
    const StepOutcome outcome = task_->Step(env.data.get());
    const uint32_t limit = task_->max_episode_steps();
    if (limit == 0 || env.steps < limit) ++env.steps;
    io.rewards[index] = outcome.reward;
    io.terminateds[index] = outcome.terminated ? 1 : 0;
    io.truncateds[index] = limit != 0 && env.steps == limit ? 1 : 0;
    task_->Observe(*env.data, io.obs.subspan(size_t{index} * schema_.obs_size,
                                             schema_.obs_size));
  });
}

// The client may overwrite `actions` meanwhile: each value is read once.
void MujocoEngine::ApplyActions(std::span<const float> actions,
                                mjData* data) const {
  for (size_t i = 0; i < actions.size(); ++i) {
    const auto value = static_cast<mjtNum>(actions[i]);
    if (!(std::abs(value) <= mjMAXVAL)) {
      mj_warning(data, mjWARN_BADCTRL, static_cast<int>(i));
      std::fill_n(data->ctrl, actions.size(), mjtNum{0});
      return;
    }
    data->ctrl[i] = value;
  }
}

// Runs in any of the pool's threads, out of which nothing may be thrown.
template <typename Call>
void MujocoEngine::Guarded(uint32_t index, Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    {
      const std::lock_guard<std::mutex> lock(failure_mutex_);
      if (failure_.empty()) {
        failure_ = absl::StrCat("environment ", index, ": ", error.what());
      }
    }
    // MuJoCo left its work half done: its stack, too, has to be put right.
    mj_resetData(&task_->model(), envs_[index].data.get());
  }
}

absl::Status MujocoEngine::TakeFailure() {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  if (failure_.empty()) return absl::OkStatus();
  return MakeError(ErrorCode::kEngineFailed, std::exchange(failure_, ""));
}

}  // namespace tandem

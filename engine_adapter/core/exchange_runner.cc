#include "engine_adapter/core/exchange_runner.h"

#include <algorithm>
#include <exception>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// An engine's exception becomes a status at this one boundary.
template <typename Call>
absl::Status Guarded(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("the engine threw: ", error.what()));
  }
}

}  // namespace

ExchangeRunner::ExchangeRunner(Engine* engine, const StepArrays* arrays)
    : engine_(engine), arrays_(arrays), reset_next_(arrays->num_envs, 0) {
  to_reset_.reserve(arrays->num_envs);
  to_step_.reserve(arrays->num_envs);
}

absl::Status ExchangeRunner::ResetAll(std::optional<uint64_t> first_seed) {
  to_reset_.clear();
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    to_reset_.push_back({.env = env, .seed = {}});
    if (first_seed) to_reset_.back().seed = *first_seed + env;
  }
  return ResetListed();
}

absl::Status ExchangeRunner::Run(ExchangeKind kind, AutoresetMode autoreset) {
  to_reset_.clear();
  to_step_.clear();
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    const uint8_t flags = arrays_->resets[env];
    if (flags != 0) {
      to_reset_.push_back({.env = env, .seed = {}});
      if ((flags & kResetSeeded) != 0) {
        to_reset_.back().seed = arrays_->reset_seeds[env];
      }
    } else if (kind == ExchangeKind::kStep) {
      if (reset_next_[env] != 0) {
        to_reset_.push_back({.env = env, .seed = {}});
      } else {
        to_step_.push_back(env);
      }
    }
  }
  if (absl::Status status = ResetListed(); !status.ok()) return status;
  return StepListed(autoreset);
}

absl::Status ExchangeRunner::ResetListed() {
  if (to_reset_.empty()) return absl::OkStatus();
  for (const ResetRequest& request : to_reset_) {
    arrays_->rewards[request.env] = 0;
    arrays_->dones[request.env] = 0;
    arrays_->truncateds[request.env] = 0;
    arrays_->terminateds[request.env] = 0;
    reset_next_[request.env] = 0;
  }
  return Guarded([&] { return engine_->Reset(to_reset_, arrays_->obs); });
}

absl::Status ExchangeRunner::StepListed(AutoresetMode autoreset) {
  if (to_step_.empty()) return absl::OkStatus();
  const StepIo io = {.actions = arrays_->actions,
                     .obs = arrays_->obs,
                     .rewards = arrays_->rewards,
                     .terminateds = arrays_->terminateds,
                     .truncateds = arrays_->truncateds};
  absl::Status status = Guarded([&] { return engine_->Step(to_step_, io); });
  if (!status.ok()) return status;

  to_reset_.clear();
  for (const uint32_t env : to_step_) {
    const bool done =
        arrays_->terminateds[env] != 0 || arrays_->truncateds[env] != 0;
    arrays_->dones[env] = done ? 1 : 0;
    if (!done || autoreset == AutoresetMode::kDisabled) continue;
    if (autoreset == AutoresetMode::kNextStep) {
      reset_next_[env] = 1;
      continue;
    }
    const size_t row = size_t{env} * arrays_->obs_size;
    std::copy_n(arrays_->obs.begin() + static_cast<ptrdiff_t>(row),
                arrays_->obs_size,
                arrays_->final_obs.begin() + static_cast<ptrdiff_t>(row));
    to_reset_.push_back({.env = env, .seed = {}});
  }
  if (to_reset_.empty()) return absl::OkStatus();
  // The episode's reward and flags stay; only its observation is replaced.
  return Guarded([&] { return engine_->Reset(to_reset_, arrays_->obs); });
}

}  // namespace tandem

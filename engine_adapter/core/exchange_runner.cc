#include "engine_adapter/core/exchange_runner.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

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

// Copies an environment's row.
template <typename T>
void KeepRow(std::span<T> from, size_t size, size_t env, std::span<T> to) {
  std::ranges::copy(from.subspan(env * size, size),
                    to.subspan(env * size, size).begin());
}

bool AllZero(std::span<const uint8_t> flags) {
  return flags[0] == 0 &&
         std::memcmp(flags.data(), flags.data() + 1, flags.size() - 1) == 0;
}

// dones = terminateds or truncateds, all of them 0 or 1; whether any is 1.
// Eight at a time: an environment's flags cost no more than a part of a cycle.
bool MarkDones(const StepArrays& arrays) {
  uint64_t any = 0;
  for (size_t at = 0; at < arrays.num_envs; at += sizeof(uint64_t)) {
    const size_t bytes = std::min(sizeof(uint64_t), arrays.num_envs - at);
    uint64_t terminateds = 0;
    uint64_t truncateds = 0;
    std::memcpy(&terminateds, &arrays.terminateds[at], bytes);
    std::memcpy(&truncateds, &arrays.truncateds[at], bytes);
    const uint64_t dones = terminateds | truncateds;
    std::memcpy(&arrays.dones[at], &dones, bytes);
    any |= dones;
  }
  return any != 0;
}

}  // namespace

ExchangeRunner::ExchangeRunner(Engine* engine, const StepArrays* arrays)
    : engine_(engine), arrays_(arrays), reset_next_(arrays->num_envs, 0) {
  to_reset_.reserve(arrays->num_envs);
  some_to_step_.reserve(arrays->num_envs);
  all_.resize(arrays->num_envs);
  std::iota(all_.begin(), all_.end(), 0U);
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
  if (kind == ExchangeKind::kStep && AllZero(arrays_->resets) &&
      AllZero(reset_next_)) {
    return Step(all_, autoreset);
  }
  to_reset_.clear();
  some_to_step_.clear();
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
        some_to_step_.push_back(env);
      }
    }
  }
  if (absl::Status status = ResetListed(); !status.ok()) return status;
  return some_to_step_.empty() ? absl::OkStatus()
                               : Step(some_to_step_, autoreset);
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
  return ResetEngine();
}

absl::Status ExchangeRunner::ResetEngine() {
  const ResetIo io = {.obs = arrays_->obs, .infos = arrays_->infos};
  return Guarded([&] { return engine_->Reset(to_reset_, io); });
}

// Of kind kStep: whom it does not step was reset, and so has no flag.
absl::Status ExchangeRunner::Step(std::span<const uint32_t> envs,
                                  AutoresetMode autoreset) {
  const StepIo io = {.actions = arrays_->actions,
                     .obs = arrays_->obs,
                     .rewards = arrays_->rewards,
                     .terminateds = arrays_->terminateds,
                     .truncateds = arrays_->truncateds,
                     .infos = arrays_->infos};
  absl::Status status = Guarded([&] { return engine_->Step(envs, io); });
  if (!status.ok()) return status;
  if (!MarkDones(*arrays_) || autoreset == AutoresetMode::kDisabled) {
    return absl::OkStatus();
  }

  to_reset_.clear();
  for (const uint32_t env : envs) {
    if (arrays_->dones[env] == 0) continue;
    if (autoreset == AutoresetMode::kNextStep) {
      reset_next_[env] = 1;
      continue;
    }
    KeepRow(arrays_->obs, arrays_->obs_size, env, arrays_->final_obs);
    KeepRow(arrays_->infos, arrays_->info_size, env, arrays_->final_infos);
    to_reset_.push_back({.env = env, .seed = {}});
  }
  if (to_reset_.empty()) return absl::OkStatus();
  // The episode's reward and flags stay; its observation and infos are
  // replaced.
  return ResetEngine();
}

}  // namespace tandem

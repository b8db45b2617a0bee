#include "engine_adapter/host/exchange_runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine_adapter/base/guarded.h"

namespace tandem {
namespace {

// Copies one environment's row.
template <typename T>
void KeepRow(std::span<T> from, size_t size, size_t env, std::span<T> to) {
  std::ranges::copy(from.subspan(env * size, size),
                    to.subspan(env * size, size).begin());
}

bool AllZero(std::span<const uint8_t> flags) {
  return flags[0] == 0 &&
         std::memcmp(flags.data(), flags.data() + 1, flags.size() - 1) == 0;
}

// Computes dones = terminateds or truncateds, each 0 or 1. Returns whether any
// is 1. Reads the rest byte by byte, for this reason: a word-sized read of
// bytes that were just written must wait until they, and all stores before
// them, have left the store buffer. That takes as long as the transfer of the
// client's cache lines to this core (0.2 us: all that a host added to an
// exchange of one environment). An engine that writes eight flags one by one
// directly before it returns still pays that once.
bool MarkDones(const StepArrays& arrays) {
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t any = 0;
  size_t at = 0;
  for (; at + kWord <= arrays.num_envs; at += kWord) {
    uint64_t terminateds = 0;
    uint64_t truncateds = 0;
    std::memcpy(&terminateds, &arrays.terminateds[at], kWord);
    std::memcpy(&truncateds, &arrays.truncateds[at], kWord);
    const uint64_t dones = terminateds | truncateds;
    std::memcpy(&arrays.dones[at], &dones, kWord);
    any |= dones;
  }
  for (; at < arrays.num_envs; ++at) {
    arrays.dones[at] = arrays.terminateds[at] | arrays.truncateds[at];
    any |= arrays.dones[at];
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

ExchangeRunner::Accumulated::Accumulated(const StepArrays& like)
    : floats(like.num_envs + 2 * like.obs.size()),
      doubles(2 * like.infos.size()),
      flags(size_t{4} * like.num_envs),
      arrays(like),
      rewards(like.num_envs),
      terminateds(like.num_envs),
      truncateds(like.num_envs) {
  const std::span<float> all(floats);
  arrays.rewards = all.first(like.num_envs);
  arrays.obs = all.subspan(like.num_envs, like.obs.size());
  arrays.final_obs = all.last(like.obs.size());
  arrays.infos = std::span(doubles).first(like.infos.size());
  arrays.final_infos = std::span(doubles).last(like.infos.size());
  std::span<uint8_t>* const flag_arrays[] = {
      &arrays.dones, &arrays.terminateds, &arrays.truncateds, &arrays.resets};
  for (size_t i = 0; i < std::size(flag_arrays); ++i) {
    *flag_arrays[i] =
        std::span(flags).subspan(i * like.num_envs, like.num_envs);
  }
}

void ExchangeRunner::Accumulated::Clear(uint32_t env) {
  rewards[env] = 0;
  terminateds[env] = 0;
  truncateds[env] = 0;
}

ExchangeRunner::Accumulated& ExchangeRunner::TheAccumulated() {
  if (accumulated_ == nullptr) {
    accumulated_ = std::make_unique<Accumulated>(*arrays_);
  }
  return *accumulated_;
}

absl::Status ExchangeRunner::RunUnrequestedStep(std::span<const float> actions,
                                                AutoresetMode autoreset) {
  Accumulated& accumulated = TheAccumulated();
  // The engine only reads the actions.
  accumulated.arrays.actions = {const_cast<float*>(actions.data()),
                                actions.size()};
  absl::Status status =
      RunOn(accumulated.arrays, ExchangeKind::kStep, autoreset);
  if (!status.ok()) return status;
  accumulated.any = true;
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    accumulated.rewards[env] += accumulated.arrays.rewards[env];
    accumulated.terminateds[env] |= accumulated.arrays.terminateds[env];
    accumulated.truncateds[env] |= accumulated.arrays.truncateds[env];
  }
  return absl::OkStatus();
}

absl::Status ExchangeRunner::ResetUnrequested(
    std::span<const ResetRequest> requests) {
  Accumulated& accumulated = TheAccumulated();
  to_reset_.assign(requests.begin(), requests.end());
  for (const ResetRequest& request : requests) accumulated.Clear(request.env);
  return ResetListed(accumulated.arrays);
}

// Adds the unreported results to the exchange's results.
void ExchangeRunner::ReportAccumulated(ExchangeKind kind) {
  Accumulated& accumulated = *accumulated_;
  bool unreported = false;
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    if (arrays_->resets[env] != 0) {
      accumulated.Clear(env);
      continue;
    }
    if (kind == ExchangeKind::kResetOnly) {
      unreported = true;
      continue;
    }
    arrays_->rewards[env] += accumulated.rewards[env];
    if ((accumulated.terminateds[env] | accumulated.truncateds[env]) != 0) {
      if (arrays_->dones[env] == 0) {
        KeepRow(accumulated.arrays.final_obs, arrays_->obs_size, env,
                arrays_->final_obs);
        KeepRow(accumulated.arrays.final_infos, arrays_->info_size, env,
                arrays_->final_infos);
      }
      arrays_->dones[env] = 1;
      arrays_->terminateds[env] |= accumulated.terminateds[env];
      arrays_->truncateds[env] |= accumulated.truncateds[env];
    }
    accumulated.Clear(env);
  }
  accumulated.any = unreported;
}

absl::Status ExchangeRunner::ResetAll(std::optional<uint64_t> first_seed) {
  to_reset_.clear();
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    to_reset_.push_back({.env = env, .seed = {}});
    if (first_seed) to_reset_.back().seed = *first_seed + env;
    if (accumulated_ != nullptr) accumulated_->Clear(env);
  }
  return ResetListed(*arrays_);
}

absl::Status ExchangeRunner::Run(ExchangeKind kind, AutoresetMode autoreset) {
  absl::Status status = RunOn(*arrays_, kind, autoreset);
  if (status.ok() && accumulated_ != nullptr && accumulated_->any) {
    ReportAccumulated(kind);
  }
  return status;
}

absl::Status ExchangeRunner::RunOn(const StepArrays& arrays, ExchangeKind kind,
                                   AutoresetMode autoreset) {
  if (kind == ExchangeKind::kStep && to_reset_next_ == 0 &&
      AllZero(arrays.resets)) {
    return Step(all_, autoreset, arrays);
  }
  to_reset_.clear();
  some_to_step_.clear();
  for (uint32_t env = 0; env < arrays.num_envs; ++env) {
    const uint8_t flags = arrays.resets[env];
    if (flags != 0) {
      to_reset_.push_back({.env = env, .seed = {}});
      if ((flags & kResetSeeded) != 0) {
        to_reset_.back().seed = arrays.reset_seeds[env];
      }
    } else if (kind == ExchangeKind::kStep) {
      if (reset_next_[env] != 0) {
        to_reset_.push_back({.env = env, .seed = {}});
      } else {
        some_to_step_.push_back(env);
      }
    }
  }
  if (absl::Status status = ResetListed(arrays); !status.ok()) return status;
  return some_to_step_.empty() ? absl::OkStatus()
                               : Step(some_to_step_, autoreset, arrays);
}

absl::Status ExchangeRunner::ResetListed(const StepArrays& arrays) {
  if (to_reset_.empty()) return absl::OkStatus();
  for (const ResetRequest& request : to_reset_) {
    arrays.rewards[request.env] = 0;
    arrays.dones[request.env] = 0;
    arrays.truncateds[request.env] = 0;
    arrays.terminateds[request.env] = 0;
    to_reset_next_ -= reset_next_[request.env];
    reset_next_[request.env] = 0;
  }
  return ResetEngine(arrays);
}

absl::Status ExchangeRunner::ResetEngine(const StepArrays& arrays) {
  const ResetIo io = {.obs = arrays.obs, .infos = arrays.infos};
  return Guarded([&] { return engine_->Reset(to_reset_, io); });
}

// For kStep: an environment that the exchange does not step was reset, so its
// flags are 0.
absl::Status ExchangeRunner::Step(std::span<const uint32_t> envs,
                                  AutoresetMode autoreset,
                                  const StepArrays& arrays) {
  const StepIo io = {.actions = arrays.actions,
                     .obs = arrays.obs,
                     .rewards = arrays.rewards,
                     .terminateds = arrays.terminateds,
                     .truncateds = arrays.truncateds,
                     .infos = arrays.infos};
  absl::Status status = Guarded([&] { return engine_->Step(envs, io); });
  if (!status.ok()) return status;
  // DISABLED: only the client's reset flags cause resets.
  if (!MarkDones(arrays) || autoreset == AutoresetMode::kDisabled) {
    return absl::OkStatus();
  }

  to_reset_.clear();
  for (const uint32_t env : envs) {
    if (arrays.dones[env] == 0) continue;
    // NEXT_STEP: RunOn resets in place of the next step.
    if (autoreset == AutoresetMode::kNextStep) {
      reset_next_[env] = 1;
      ++to_reset_next_;
      continue;
    }
    // SAME_STEP: keeps the last observation and infos, then resets.
    KeepRow(arrays.obs, arrays.obs_size, env, arrays.final_obs);
    KeepRow(arrays.infos, arrays.info_size, env, arrays.final_infos);
    to_reset_.push_back({.env = env, .seed = {}});
  }
  if (to_reset_.empty()) return absl::OkStatus();
  // The reset replaces observation and infos; reward and flags stay the
  // episode's.
  return ResetEngine(arrays);
}

}  // namespace tandem

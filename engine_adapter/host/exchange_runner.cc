#include "engine_adapter/host/exchange_runner.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/guarded.h"

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

ExchangeRunner::ExchangeRunner(const StepArrays* arrays)
    : arrays_(arrays),
      reset_next_(arrays->num_envs, 0),
      state_rows_(arrays, [this](uint32_t env) {
        return reset_next_[env] != 0 ||
               (autoreset_ == AutoresetMode::kDisabled &&
                arrays_->dones[env] != 0);
      }) {
  SetTarget(*arrays);
  for (const FieldArray& field : arrays->fields) {
    // Float32 rows are kept as obs is.
    if (field.role != FieldRole::kObs || arrays->obs_size != 0) continue;
    obs_pairs_.push_back(
        {&field, arrays->Find(FieldRole::kFinalObs, field.path)});
  }
  rewards_field_ = arrays->Find(FieldRole::kReward, "");
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
  arrays.images = {};
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
  assert(arrays_->fields.empty());  // the caller refuses them
  if (accumulated_ == nullptr) {
    accumulated_ = std::make_unique<Accumulated>(*arrays_);
  }
  return *accumulated_;
}

void ExchangeRunner::AlsoChange(OtherArrays others) {
  others_ = std::move(others);
  changed_.reserve(arrays_->num_envs);
}

bool ExchangeRunner::ChangeOthers(const OtherArrays::Change& change) {
  if (!change) return true;
  changed_.clear();
  for (const ResetRequest& request : to_reset_) changed_.push_back(request.env);
  const absl::Status status = change(changed_);
  if (!status.ok()) Done(status);
  return status.ok();
}

void ExchangeRunner::SetTarget(const StepArrays& arrays) {
  target_ = &arrays;
  work_.reset_io = {.obs = arrays.obs,
                    .infos = arrays.infos,
                    .fields = arrays.fields,
                    .images = arrays.images};
  work_.step_io = {.actions = arrays.actions,
                   .obs = arrays.obs,
                   .rewards = arrays.rewards,
                   .terminateds = arrays.terminateds,
                   .truncateds = arrays.truncateds,
                   .infos = arrays.infos,
                   .fields = arrays.fields,
                   .images = arrays.images};
}

void ExchangeRunner::BeginUnrequestedStep(std::span<const float> actions,
                                          AutoresetMode autoreset) {
  Accumulated& accumulated = TheAccumulated();
  // The engine only reads the actions.
  accumulated.arrays.actions = {const_cast<float*>(actions.data()),
                                actions.size()};
  SetTarget(accumulated.arrays);
  BeginOn(accumulated.arrays, ExchangeKind::kStep, autoreset);
}

void ExchangeRunner::Accumulate() {
  accumulated_->any = true;
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    accumulated_->rewards[env] += accumulated_->arrays.rewards[env];
    accumulated_->terminateds[env] |= accumulated_->arrays.terminateds[env];
    accumulated_->truncateds[env] |= accumulated_->arrays.truncateds[env];
  }
}

void ExchangeRunner::BeginUnrequestedReset(
    std::span<const ResetRequest> requests) {
  Accumulated& accumulated = TheAccumulated();
  SetTarget(accumulated.arrays);
  kind_ = ExchangeKind::kResetOnly;
  some_to_step_.clear();
  to_reset_.assign(requests.begin(), requests.end());
  for (const ResetRequest& request : requests) accumulated.Clear(request.env);
  ResetListed();
}

// Adds the unreported results to the exchange's results.
void ExchangeRunner::ReportAccumulated() {
  Accumulated& accumulated = *accumulated_;
  bool unreported = false;
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    if (IsReset(arrays_->resets[env])) {
      accumulated.Clear(env);
      continue;
    }
    if (kind_ == ExchangeKind::kResetOnly || arrays_->resets[env] == kSkip) {
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

void ExchangeRunner::BeginResetAll(std::optional<uint64_t> first_seed) {
  SetTarget(*arrays_);
  state_rows_.DiscardAll();
  kind_ = ExchangeKind::kResetOnly;
  some_to_step_.clear();
  to_reset_.clear();
  for (uint32_t env = 0; env < arrays_->num_envs; ++env) {
    to_reset_.push_back({.env = env, .seed = {}});
    if (first_seed) to_reset_.back().seed = *first_seed + env;
    if (accumulated_ != nullptr) accumulated_->Clear(env);
  }
  ResetListed();
}

void ExchangeRunner::Begin(ExchangeKind kind, AutoresetMode autoreset) {
  if (target_ != arrays_) SetTarget(*arrays_);
  BeginOn(*arrays_, kind, autoreset);
}

void ExchangeRunner::BeginOn(const StepArrays& arrays, ExchangeKind kind,
                             AutoresetMode autoreset) {
  kind_ = kind;
  autoreset_ = autoreset;
  if (kind == ExchangeKind::kStep && to_reset_next_ == 0 &&
      AllZero(arrays.resets)) {
    StepListed(all_);
    return;
  }
  to_reset_.clear();
  some_to_step_.clear();
  for (uint32_t env = 0; env < arrays.num_envs; ++env) {
    const uint8_t flags = arrays.resets[env];
    if (flags == kSkip) continue;
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
  ResetListed();
}

void ExchangeRunner::ResetListed() {
  if (to_reset_.empty()) {
    StepListed(some_to_step_);
    return;
  }
  for (const ResetRequest& request : to_reset_) {
    target_->rewards[request.env] = 0;
    target_->dones[request.env] = 0;
    target_->truncateds[request.env] = 0;
    target_->terminateds[request.env] = 0;
    if (rewards_field_ != nullptr) {
      rewards_field_->Values<double>()[request.env] = 0;
    }
    to_reset_next_ -= reset_next_[request.env];
    reset_next_[request.env] = 0;
  }
  if (!ChangeOthers(others_.zero_rewards)) return;
  work_.resets = to_reset_;
  work_.steps = {};
  stage_ = Stage::kReset;
}

void ExchangeRunner::StepListed(std::span<const uint32_t> envs) {
  if (envs.empty()) {
    End();
    return;
  }
  work_.resets = {};
  work_.steps = envs;
  stage_ = Stage::kStep;
}

void ExchangeRunner::Done(const absl::Status& status) {
  if (!status.ok()) {
    stage_ = Stage::kIdle;
    status_ = status;
    state_rows_.DiscardAll();
  } else if (stage_ == Stage::kStep) {
    EndStep();
  } else if (stage_ == Stage::kReset) {
    EndReset();
  } else if (!state_rows_.any_staged() || !PutStates()) {
    End();
  }
}

bool ExchangeRunner::PutStates() {
  std::erase_if(to_reset_, [this](const ResetRequest& request) {
    return !state_rows_.Put(request.env, *target_).value_or(false);
  });
  if (autoreset_ != AutoresetMode::kSameStep || to_reset_.empty()) return false;
  for (ResetRequest& request : to_reset_) request.seed.reset();
  work_.resets = to_reset_;
  return true;
}

void ExchangeRunner::EndReset() {
  if (state_rows_.any_staged()) {
    if (PutStates()) return;
    for (const ResetRequest& request : to_reset_) {
      target_->dones[request.env] = 1;
      if (autoreset_ == AutoresetMode::kDisabled) continue;
      reset_next_[request.env] = 1;
      ++to_reset_next_;
    }
  }
  StepListed(some_to_step_);
}

// For kStep: an environment that the exchange does not step was reset, so its
// flags are 0; or it was skipped, so its flags are as before.
void ExchangeRunner::EndStep() {
  const StepArrays& arrays = *target_;
  // DISABLED: only the client's reset flags cause resets.
  if (!MarkDones(arrays) || autoreset_ == AutoresetMode::kDisabled) {
    End();
    return;
  }
  to_reset_.clear();
  for (const uint32_t env : work_.steps) {
    if (arrays.dones[env] == 0) continue;
    // NEXT_STEP: BeginOn resets in place of the next step.
    if (autoreset_ == AutoresetMode::kNextStep) {
      reset_next_[env] = 1;
      ++to_reset_next_;
      continue;
    }
    // SAME_STEP: keeps the last observation and infos, then resets.
    KeepRow(arrays.obs, arrays.obs_size, env, arrays.final_obs);
    KeepRow(arrays.infos, arrays.info_size, env, arrays.final_infos);
    for (const ObsPair& pair : obs_pairs_) {
      std::ranges::copy(pair.obs->Row(env), pair.final_obs->Row(env).begin());
    }
    to_reset_.push_back({.env = env, .seed = {}});
  }
  if (to_reset_.empty()) {
    End();
    return;
  }
  if (!ChangeOthers(others_.keep_final)) return;
  // The reset replaces observation and infos; reward and flags stay the
  // episode's.
  work_.resets = to_reset_;
  work_.steps = {};
  stage_ = Stage::kAutoreset;
}

void ExchangeRunner::End() {
  stage_ = Stage::kIdle;
  if (!status_.ok()) status_ = absl::OkStatus();
  if (accumulated_ == nullptr) return;
  if (target_ != arrays_) {
    if (kind_ == ExchangeKind::kStep) Accumulate();
  } else if (accumulated_->any) {
    ReportAccumulated();
  }
}

void RunAll(ExchangeRunner* runner, Engine* engine) {
  while (const EngineWork* const work = runner->work()) {
    runner->Done(Guarded([&] {
      return work->steps.empty() ? engine->Reset(work->resets, work->reset_io)
                                 : engine->Step(work->steps, work->step_io);
    }));
  }
}

}  // namespace tandem

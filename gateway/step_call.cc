#include "gateway/step_call.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "gateway/task_contract.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

constexpr double kDefaultStepSecs = 5;  // the published protocol's

// Returns the terms' columns among the infos; the reward's own follows them.
absl::StatusOr<std::vector<size_t>> ColumnsOf(
    const std::vector<std::string>& terms, const StepNames& names) {
  const std::vector<std::string>& infos = names.infos;
  std::vector<size_t> columns;
  for (const std::string& term : terms) {
    const auto found = std::find(infos.begin(), infos.end(), term);
    const bool is_reward = names.has_reward && term == kRewardTerm;
    if (found == infos.end() && !is_reward) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("reward_signals: expected the term ", Quoted(term),
                       " of the negotiated contract, found another task, "
                       "without it; next: NegotiateTask"));
    }
    columns.push_back(is_reward ? infos.size()
                                : static_cast<size_t>(found - infos.begin()));
  }
  return columns;
}

template <typename Number>
std::span<Number> RowOf(std::span<Number> rows, size_t env, size_t size) {
  return rows.subspan(env * size, size);
}

}  // namespace

StepCall::StepCall(const hazel::rpc::StepRequest* step,
                   hazel::rpc::StepResponse* answer, RewardTerms terms,
                   std::function<bool()> is_cancelled,
                   std::function<void(const absl::Status&)> end)
    : request(step),
      response(answer),
      rewards(std::move(terms)),
      cancelled(std::move(is_cancelled)),
      finish(std::move(end)),
      begun_ns(MonotonicNanos()),
      deadline(Deadline::After(
          step->timeout_s() > 0 ? step->timeout_s() : kDefaultStepSecs,
          begun_ns)) {}

absl::Status StepCall::Prepare(const StepArrays& arrays, const StepNames& names,
                               const ActionGroups& groups) {
  if (arrays.obs_size == 0 || arrays.act_size == 0) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("expected observations and actions that are rows of "
                     "float32, found ",
                     arrays.obs_size, " and ", arrays.act_size,
                     " numbers; next: use a task with Box spaces of float32"));
  }
  if (rewards != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(reward_columns, ColumnsOf(*rewards, names));
  }
  return ComposeActions(*request, groups,
                        RowOf(arrays.actions, env, arrays.act_size));
}

void StepCall::Fill(const StepArrays& arrays, uint64_t frame_seq,
                    const StepNames& names) const {
  response->set_success(true);
  response->set_physics_step_duration_us(
      static_cast<uint64_t>(MonotonicNanos() - begun_ns) / 1000);
  FillFrame(arrays, frame_seq, env, response->mutable_observation());
  const auto infos = RowOf(arrays.infos, env, names.infos.size());
  if (rewards == nullptr && names.has_reward) {
    (*response->mutable_reward_signals())[kRewardTerm] = arrays.rewards[env];
  }
  for (size_t i = 0; i < reward_columns.size(); ++i) {
    const size_t column = reward_columns[i];
    (*response->mutable_reward_signals())[(*rewards)[i]] =
        column < infos.size() ? static_cast<float>(infos[column])
                              : arrays.rewards[env];
  }
  const bool terminated = arrays.terminateds[env] != 0;
  const bool truncated = arrays.truncateds[env] != 0;
  response->set_terminated(terminated);
  response->set_truncated(truncated);
  (*response->mutable_termination_flags())[kTerminatedTerm] = terminated;
  (*response->mutable_termination_flags())[kTimeOutTerm] = truncated;
  for (size_t i = 0; i < infos.size(); ++i) {
    (*response->mutable_info())[names.infos[i]] = static_cast<float>(infos[i]);
  }
}

void StepCall::TimeOut(absl::string_view message) {
  response->set_success(false);
  response->set_message(std::string(message));
  status = absl::OkStatus();
}

absl::Status StepCall::CheckWaits() const {
  if (!cancelled()) return absl::OkStatus();
  return absl::CancelledError("the program waits no longer");
}

void FillFrame(const StepArrays& arrays, uint64_t frame_seq, uint32_t env,
               hazel::rpc::AgentFrame* frame) {
  frame->set_timestamp_ms(UnixMillis());
  frame->set_frame_number(static_cast<uint32_t>(frame_seq));
  const auto observations = RowOf(arrays.obs, env, arrays.obs_size);
  const auto actions = RowOf(arrays.actions, env, arrays.act_size);
  frame->mutable_observations()->Add(observations.begin(), observations.end());
  frame->mutable_actions()->Add(actions.begin(), actions.end());
  frame->set_agent_name(absl::StrCat("agent_", env));
}

}  // namespace tandem::gateway

// Task contracts: the observations, rewards and terminations that a program
// asks for, compared with those of the engine's task.
//
// Data flow: the agent's schema and the names of a step -> TaskTerms; a
// program's contract -> Validate -> errors with the nearest names, or a session
// whose reward terms select the signals of each Step.

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gateway/info_names.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/contract.pb.h"

namespace tandem::gateway {

// The name of the task's reward.
inline constexpr char kRewardTerm[] = "reward";
// Infos whose names begin so are parts of the reward.
inline constexpr char kRewardPrefix[] = "reward_";
inline constexpr char kTerminatedTerm[] = "terminated";
inline constexpr char kTimeOutTerm[] = "time_out";

// What a task has. No engine's names are known here.
struct TaskTerms {
  std::vector<std::string> observations;  // one for each number
  std::vector<std::string> actions;       // the same
  std::vector<std::string> rewards;
  std::vector<std::string> terminations;
};

// Numbers of the schema without a name are named "observation_3" and
// "action_3".
TaskTerms TermsOf(const hazel::rpc::AgentSchema& schema,
                  const StepNames& names);

// Returns the name of `names` with the fewest changes of characters; "" if all
// are too different.
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& names);

// Checks the terms' names. Weights, params and randomisations without a
// function here are warnings.
hazel::rpc::ContractValidationResult Validate(
    const hazel::rpc::TaskContract& contract, const TaskTerms& terms);

// Returns the session of a valid contract: its reward terms, or the task's
// "reward" if it has none, and the layout of the complete observation. It has
// no id.
hazel::rpc::NegotiatedTaskSession SessionOf(
    const hazel::rpc::TaskContract& contract, const TaskTerms& terms);

hazel::rpc::EngineCapabilityManifest ManifestOf(const TaskTerms& terms);

}  // namespace tandem::gateway

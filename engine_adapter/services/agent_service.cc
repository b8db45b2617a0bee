#include "engine_adapter/services/agent_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "engine_adapter/services/env_selection.h"

namespace tandem {
namespace {

// Returns a sentence about the result, or the future result.
std::string Message(absl::string_view what, size_t envs,
                    const std::vector<std::string>& unused) {
  std::string text = absl::StrCat(what, " ", envs,
                                  envs == 1 ? " environment" : " environments");
  if (!unused.empty()) {
    absl::StrAppend(&text, "; this task has no use for ",
                    absl::StrJoin(unused, ", "));
  }
  return text;
}

}  // namespace

rpc::AgentSchemaT AgentService::SchemaOf(uint32_t env) const {
  rpc::AgentSchemaT schema;
  schema.agent_name = AgentName(env);
  schema.observation_names = schema_.observation_names;
  schema.action_names = schema_.action_names;
  schema.observation_size = schema_.obs_size;
  schema.action_size = schema_.act_size;
  return schema;
}

absl::StatusOr<rpc::GetAgentSchemaResponseT> AgentService::GetAgentSchema(
    const rpc::GetAgentSchemaRequestT& request) const {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> envs,
      SelectEnvs(request.env_ids, request.agent_name, schema_.num_envs));
  rpc::GetAgentSchemaResponseT response;
  response.schema = std::make_unique<rpc::AgentSchemaT>(SchemaOf(envs.front()));
  if (request.env_ids.empty()) return response;
  for (const uint32_t env : envs) {
    response.schemas.push_back(
        std::make_unique<rpc::AgentSchemaT>(SchemaOf(env)));
  }
  return response;
}

void AgentService::ResetAgent(const rpc::ResetAgentRequestT& request,
                              RpcAnswer<rpc::ResetAgentResponseT> answer) {
  absl::StatusOr<std::vector<uint32_t>> envs =
      SelectEnvs(request.env_ids, request.agent_name, schema_.num_envs);
  if (!envs.ok()) return answer(envs.status());
  absl::StatusOr<rpc::ResetAgentResponseT> response = Prepare(request, *envs);
  if (!response.ok() || request.at_next_reset) {
    return answer(std::move(response));
  }
  simulation_->Reset(*envs, request.seed,
                     [answer, response = *std::move(response)](
                         const absl::Status& status) mutable {
                       if (!status.ok()) return answer(status);
                       answer(std::move(response));
                     });
}

absl::StatusOr<rpc::ResetAgentResponseT> AgentService::Prepare(
    const rpc::ResetAgentRequestT& request, const std::vector<uint32_t>& envs) {
  const rpc::SimulationContractT* const contract =
      request.simulation_contract.get();
  rpc::ResetAgentResponseT response;
  simulation_->NoteChange();
  if (randomization_ != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(
        response.unused_fields,
        randomization_->SetContract(envs, contract, request.seed));
  } else if (contract != nullptr) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("simulation_contract: expected an engine "
                     "that randomises, found '",
                     schema_.task, "', which does not; leave it out"));
  } else if (request.at_next_reset && request.seed) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("seed: expected none with at_next_reset, since '",
                     schema_.task, "' draws nothing by a contract, found ",
                     *request.seed,
                     "; leave it out, or give it to the reset itself"));
  }
  const absl::string_view what =
      !request.at_next_reset      ? "reset"
      : contract != nullptr       ? "contract taken on by"
      : randomization_ != nullptr ? "contract, if any, given up by"
                                  : "nothing changes, for want of a contract, "
                                    "in";
  response.success = true;
  response.message = Message(what, envs.size(), response.unused_fields);
  return response;
}

}  // namespace tandem

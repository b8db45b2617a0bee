#include "engine_adapter/gateway/answers.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine_adapter/gateway/grpc_errors.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/error.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using Strings = google::protobuf::RepeatedPtrField<std::string>;

// A robot's name of the program, such as "unitreego2", is unknown to an engine,
// which has agents' names only.
std::string RobotOf(const std::string& name) {
  return absl::StartsWith(name, "agent_") ? name : std::string();
}

void Copy(const std::vector<std::string>& from, Strings* to) {
  to->Add(from.begin(), from.end());
}

}  // namespace

absl::Status Answer(Gateway* gateway, Deadline deadline,
                    const pb::GetAgentSchemaRequest& request,
                    pb::GetAgentSchemaResponse* response) {
  rpc::GetAgentSchemaRequestT question;
  question.agent_name = request.agent_name();
  TANDEM_ASSIGN_OR_RETURN(
      const rpc::GetAgentSchemaResponseT answer,
      gateway->link.Ask<rpc::GetAgentSchemaResponse>(
          rpc::MethodId::GetAgentSchema, question, deadline));
  pb::AgentSchema* const schema = response->mutable_schema();
  if (answer.schema == nullptr) return absl::OkStatus();
  schema->set_agent_name(answer.schema->agent_name);
  Copy(answer.schema->observation_names, schema->mutable_observation_names());
  Copy(answer.schema->action_names, schema->mutable_action_names());
  schema->set_observation_size(answer.schema->observation_size);
  schema->set_action_size(answer.schema->action_size);
  return absl::OkStatus();
}

absl::Status Answer(Gateway* gateway, Deadline deadline,
                    const pb::GetMujocoInfoRequest& request,
                    pb::GetMujocoInfoResponse* response) {
  rpc::GetMujocoInfoRequestT question;
  question.robot_name = RobotOf(request.robot_name());
  const auto answer = gateway->link.Ask<rpc::GetMujocoInfoResponse>(
      rpc::MethodId::GetMujocoInfo, question, deadline);
  if (!answer.ok()) {
    response->set_success(false);
    response->set_message(IsAway(answer.status())
                              ? NotReadyText(answer.status())
                              : std::string(answer.status().message()));
    return absl::OkStatus();
  }
  response->set_success(answer->success);
  response->set_message(answer->message);
  response->set_nq(answer->nq);
  response->set_nv(answer->nv);
  response->set_nu(answer->nu);
  Copy(answer->joint_names, response->mutable_joint_names());
  Copy(answer->actuator_names, response->mutable_actuator_names());
  return absl::OkStatus();
}

}  // namespace tandem::gateway

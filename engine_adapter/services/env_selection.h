// Which environments a request is about.
//
// Data flow: env_ids, agent_name or robot_name of a request -> environments.
//
//   absl::StatusOr<std::vector<uint32_t>> envs =
//       SelectEnvs(request.env_ids, request.agent_name, num_envs);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_ENV_SELECTION_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_ENV_SELECTION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// By the schema's rule: those of `env_ids`, as asked; where that is empty, the
// one that `name` names, "agent_3" being environment 3; where both are empty,
// environment 0. kInvalidArgument for an environment or name that is not there,
// or an environment that is named twice.
absl::StatusOr<std::vector<uint32_t>> SelectEnvs(
    std::span<const uint32_t> env_ids, absl::string_view name,
    uint32_t num_envs);

// kInvalidArgument for an environment that is not there.
absl::Status CheckEnv(uint32_t env, uint32_t num_envs);

// "agent_3".
std::string AgentName(uint32_t env);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_ENV_SELECTION_H_

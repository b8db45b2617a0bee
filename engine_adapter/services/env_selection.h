// The environments of a request.
//
// Data flow: env_ids, agent_name or robot_name of a request -> environments.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Selects by the schema's rule: the environments of `env_ids`, in that order;
// if it is empty, the environment of `name` ("agent_3" is environment 3); if
// both are empty, environment 0. kInvalidArgument for an unknown environment or
// name, or for a duplicate in `env_ids`.
absl::StatusOr<std::vector<uint32_t>> SelectEnvs(
    std::span<const uint32_t> env_ids, absl::string_view name,
    uint32_t num_envs);

// kInvalidArgument for an unknown environment.
absl::Status CheckEnv(uint32_t env, uint32_t num_envs);

// Returns "agent_3" for environment 3.
std::string AgentName(uint32_t env);

}  // namespace tandem

#include "engine_adapter/services/env_selection.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tandem {
namespace {

constexpr absl::string_view kPrefix = "agent_";

}  // namespace

std::string AgentName(uint32_t env) { return absl::StrCat(kPrefix, env); }

absl::Status CheckEnv(uint32_t env, uint32_t num_envs) {
  if (env < num_envs) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("environment: expected 0 to ", num_envs - 1,
                                ", found ", env));
}

absl::StatusOr<std::vector<uint32_t>> SelectEnvs(
    std::span<const uint32_t> env_ids, absl::string_view name,
    uint32_t num_envs) {
  if (!env_ids.empty()) {
    std::vector<uint32_t> sorted(env_ids.begin(), env_ids.end());
    std::ranges::sort(sorted);
    TANDEM_RETURN_IF_ERROR(CheckEnv(sorted.back(), num_envs));
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("env_ids: expected each environment once, "
                                    "found ",
                                    *twice, " twice"));
    }
    return std::vector<uint32_t>(env_ids.begin(), env_ids.end());
  }
  if (name.empty()) return std::vector<uint32_t>{0};
  absl::string_view digits = name;
  uint32_t env = 0;
  // Accepts only the exact name: not "agent_03" or "agent_+3".
  if (!absl::ConsumePrefix(&digits, kPrefix) ||
      !absl::SimpleAtoi(digits, &env) || AgentName(env) != name ||
      env >= num_envs) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("name: expected ", AgentName(0), " to ",
                     AgentName(num_envs - 1), ", found ", Quoted(name)));
  }
  return std::vector<uint32_t>{env};
}

}  // namespace tandem

#include "gateway/actions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/quoted.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

using hazel::rpc::ActionGroupEntry;

void Write(const ActionGroupEntry& group, std::span<float> row) {
  for (int i = 0; i < group.actions_size(); ++i) {
    row[static_cast<size_t>(group.action_indices(i))] = group.actions(i);
  }
}

}  // namespace

absl::Status CheckGroup(const ActionGroupEntry& group, size_t act_size) {
  const auto refuse = [&](const std::string& expected,
                          const std::string& found) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("action group ", Quoted(group.group_name()),
                                  ": expected ", expected, ", found ", found));
  };
  if (group.actions_size() != group.action_indices_size()) {
    return refuse(absl::StrCat("one action for each of its ",
                               group.action_indices_size(), " indices"),
                  absl::StrCat(group.actions_size(), " actions"));
  }
  std::set<int32_t> indices;
  for (const int32_t index : group.action_indices()) {
    if (index < 0 || static_cast<size_t>(index) >= act_size) {
      return refuse(
          absl::StrCat("indices below ", act_size, ", the agent's action_size"),
          absl::StrCat(index));
    }
    if (!indices.insert(index).second) {
      return refuse("each index once", absl::StrCat(index, " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status ComposeActions(const hazel::rpc::StepRequest& request,
                            const ActionGroups& preloaded,
                            std::span<float> row) {
  const bool has_groups =
      !preloaded.empty() || request.action_groups_size() > 0;
  const auto given = static_cast<size_t>(request.actions_size());
  if (given == row.size()) {
    std::copy(request.actions().begin(), request.actions().end(), row.begin());
  } else if (given == 0 && has_groups) {
    std::fill(row.begin(), row.end(), 0.0F);
  } else {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("actions: expected ", row.size(),
                     " numbers, the agent's action_size, found ", given,
                     "; GetAgentSchema has the names of the actions"));
  }
  for (const auto& [name, group] : preloaded) {
    TANDEM_RETURN_IF_ERROR(CheckGroup(group, row.size()));
    Write(group, row);
  }
  for (const ActionGroupEntry& group : request.action_groups()) {
    TANDEM_RETURN_IF_ERROR(CheckGroup(group, row.size()));
    Write(group, row);
  }
  const auto bad = std::find_if_not(row.begin(), row.end(), [](float number) {
    return std::isfinite(number);
  });
  if (bad == row.end()) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("actions: expected finite numbers, found ",
                                *bad, " at ", bad - row.begin()));
}

}  // namespace tandem::gateway

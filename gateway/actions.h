// The actions of a Step: its own, and those of named groups.
//
// Data flow: StepRequest.actions, then the groups of SetActionGroup, then the
// request's own groups -> one row of actions.

#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "schema/protos/hazel/agent.pb.h"

namespace tandem::gateway {

// Groups by name: a later one replaces an earlier one of its name.
using ActionGroups = std::map<std::string, hazel::rpc::ActionGroupEntry>;

// kInvalidArgument: an index is not in the action, or is there twice, or the
// group has another number of actions than of indices.
absl::Status CheckGroup(const hazel::rpc::ActionGroupEntry& group,
                        size_t act_size);

// Writes all numbers of `row`, float32[act_size]. Without actions in the
// request, groups are written over zeros. kInvalidArgument: a wrong number of
// actions, one that is not finite, or an invalid group; `row` is then
// unspecified.
absl::Status ComposeActions(const hazel::rpc::StepRequest& request,
                            const ActionGroups& preloaded,
                            std::span<float> row);

}  // namespace tandem::gateway

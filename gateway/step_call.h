// StepCall: a Step in progress, from the program's request to its response.
//
// Data flow: StepRequest -> Prepare -> a row of actions; the exchange's arrays
// -> Fill -> StepResponse -> finish, which ends the RPC.
// Ownership: shared by gRPC's reactor and ClientSlot; one of their threads at a
// time uses it, under the slot's lock.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "gateway/actions.h"
#include "gateway/connections.h"
#include "gateway/info_names.h"
#include "schema/protos/hazel/agent.pb.h"
#include "transport/step_arrays.h"

namespace tandem::gateway {

struct StepCall {
  // Both messages outlive the call. `terms`: those of the response's
  // reward_signals. `is_cancelled`: whether the program waits no longer. `end`
  // gets the status, once.
  StepCall(const hazel::rpc::StepRequest* step,
           hazel::rpc::StepResponse* answer, RewardTerms terms,
           std::function<bool()> is_cancelled,
           std::function<void(const absl::Status&)> end);

  // Writes the actions of the call's environment into arrays.actions.
  // kInvalidArgument: the actions are invalid, or the task lacks a negotiated
  // reward term. kUnsupported: observations or actions are no rows of float32.
  absl::Status Prepare(const StepArrays& arrays, const StepNames& names,
                       const ActionGroups& groups);

  // Fills the response with the results of the exchange.
  void Fill(const StepArrays& arrays, uint64_t frame_seq,
            const StepNames& names) const;

  // Programs expect the end of their timeout_s in the response: OK, with
  // success=false.
  void TimeOut(absl::string_view message);

  // CANCELLED: the program waits no longer.
  absl::Status CheckWaits() const;

  const hazel::rpc::StepRequest* request;
  hazel::rpc::StepResponse* response;
  RewardTerms rewards;
  std::function<bool()> cancelled;
  std::function<void(const absl::Status&)> finish;
  int64_t begun_ns;
  Deadline deadline;  // by the request's timeout_s
  uint32_t env = 0;
  std::vector<size_t> reward_columns = {};  // of the terms, among the infos
  bool done = false;                        // status is the outcome
  absl::Status status = {};
};

// Fills in the results of an environment's last exchange.
void FillFrame(const StepArrays& arrays, uint64_t frame_seq, uint32_t env,
               hazel::rpc::AgentFrame* frame);

}  // namespace tandem::gateway

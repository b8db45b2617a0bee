#include "engine_adapter/services/debug_service.h"

#include "absl/status/status.h"
#include "engine_adapter/services/env_selection.h"

namespace tandem {

absl::StatusOr<rpc::DebugDrawResponseT> DebugService::Draw(
    const rpc::DebugDrawRequestT& request) {
  absl::Status status = CheckEnv(request.env_id, num_envs_);
  if (status.ok()) status = port_->Draw(request);
  if (!status.ok()) return status;
  simulation_->NoteChange();
  rpc::DebugDrawResponseT response;
  response.success = true;
  return response;
}

}  // namespace tandem

// ModelService: the model and the complete state of a MuJoCo engine, for the
// service mujoco.
//
// Data flow: RpcHost -> ModelService -> MujocoModelPort.
// Ownership: RpcHost owns it. The stepping thread calls it between exchanges.

#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods allocate; none blocks. kInvalidArgument for an environment that
// does not exist.
class ModelService {
 public:
  // Both ports must outlive this object.
  ModelService(MujocoModelPort* port, SimulationPort* simulation,
               uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetModelInfoResponseT> GetModelInfo(
      const rpc::GetModelInfoRequestT& request) const;

  // Without policies no joint is claimed: a filter for claimed ones selects
  // none.
  absl::StatusOr<rpc::GetFullStateResponseT> GetFullState(
      const rpc::GetFullStateRequestT& request) const;

  // Streams a GetFullStateResponse after each change.
  absl::StatusOr<RpcStream> StreamFullState(
      const rpc::StreamFullStateRequestT& request) const;

  // kInvalidArgument for no positions, more positions than qpos has, an invalid
  // index, or a number that is not finite; nothing has changed then.
  absl::StatusOr<rpc::SetQposResponseT> SetQpos(
      const rpc::SetQposRequestT& request);

  absl::StatusOr<rpc::GetActuatorGainsResponseT> GetActuatorGains(
      const rpc::GetActuatorGainsRequestT& request) const;

 private:
  MujocoModelPort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

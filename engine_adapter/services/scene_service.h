// SceneService: an engine's entities, and the control of simulated time.
//
// Data flow: a request -> SceneService -> ScenePort, SimulationPort -> the
// answer.
// Ownership: the host owns it; the stepping thread calls it between exchanges.
// It does not depend on the RPC rings.

#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods allocate; none blocks. Methods about entities: kInvalidArgument
// for an unknown environment, kUnsupported if the engine has no entities.
class SceneService {
 public:
  // Both ports must outlive this object. `port` is nullptr for an engine
  // without entities; it still serves the methods about simulated time.
  SceneService(ScenePort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetSceneInfoResponseT> GetSceneInfo(
      const rpc::GetSceneInfoRequestT& request) const;
  absl::StatusOr<rpc::ListEntitiesResponseT> ListEntities(
      const rpc::ListEntitiesRequestT& request) const;
  // An unknown entity is no error: `found` is then false.
  absl::StatusOr<rpc::GetEntityResponseT> GetEntity(
      const rpc::GetEntityRequestT& request) const;
  // kInvalidArgument for an unknown entity, or a request without a transform;
  // and the port's errors.
  absl::StatusOr<rpc::SetEntityTransformResponseT> SetEntityTransform(
      const rpc::SetEntityTransformRequestT& request);

  // kInvalidArgument for an unknown mode; and the port's errors.
  absl::StatusOr<rpc::SetSimulationModeResponseT> SetSimulationMode(
      const rpc::SetSimulationModeRequestT& request);
  absl::StatusOr<rpc::GetSimulationModeResponseT> GetSimulationMode(
      const rpc::GetSimulationModeRequestT& request) const;
  absl::StatusOr<rpc::SetPausedResponseT> SetPaused(
      const rpc::SetPausedRequestT& request);
  // Answers after the steps. kInvalidArgument for zero steps; and the port's
  // errors.
  void SingleStep(const rpc::SingleStepRequestT& request,
                  RpcAnswer<rpc::SingleStepResponseT> answer);

 private:
  // Returns an error unless the engine has entities and the environment exists.
  absl::Status Check(uint32_t env) const;

  ScenePort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

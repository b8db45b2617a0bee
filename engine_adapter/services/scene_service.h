// SceneService: an engine's entities, and the pace of its simulated time.
//
// Data flow: a request -> SceneService -> ScenePort, SimulationPort ->
// the answer.
// Ownership: the host's; the stepping thread calls, between exchanges. It does
// not depend on the RPC rings.
//
//   SceneService service(engine->ports().scene, &simulation, num_envs);
//   auto response = service.GetSceneInfo(request);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_SCENE_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_SCENE_SERVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/ports/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods allocate; none blocks. Those about entities: kInvalidArgument for
// an environment that is not there, kUnsupported if the engine has no entities.
class SceneService {
 public:
  // Both ports outlive this. `port` is nullptr for an engine without entities;
  // the methods about its time are served all the same.
  SceneService(ScenePort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetSceneInfoResponseT> GetSceneInfo(
      const rpc::GetSceneInfoRequestT& request) const;
  absl::StatusOr<rpc::ListEntitiesResponseT> ListEntities(
      const rpc::ListEntitiesRequestT& request) const;
  // An entity that is not there is no error: `found` says so.
  absl::StatusOr<rpc::GetEntityResponseT> GetEntity(
      const rpc::GetEntityRequestT& request) const;
  // kInvalidArgument for an entity that is not there, or without a transform;
  // and the port's errors.
  absl::StatusOr<rpc::SetEntityTransformResponseT> SetEntityTransform(
      const rpc::SetEntityTransformRequestT& request);

  // kInvalidArgument for a mode of no known name; and the port's errors.
  absl::StatusOr<rpc::SetSimulationModeResponseT> SetSimulationMode(
      const rpc::SetSimulationModeRequestT& request);
  absl::StatusOr<rpc::GetSimulationModeResponseT> GetSimulationMode(
      const rpc::GetSimulationModeRequestT& request) const;
  absl::StatusOr<rpc::SetPausedResponseT> SetPaused(
      const rpc::SetPausedRequestT& request);
  // Answers when the steps are done. kInvalidArgument for no steps; and the
  // port's errors.
  void SingleStep(const rpc::SingleStepRequestT& request,
                  RpcAnswer<rpc::SingleStepResponseT> answer);

 private:
  // Whether there are entities, and that environment.
  absl::Status Check(uint32_t env) const;

  ScenePort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_SCENE_SERVICE_H_

// MujocoService: joints and controls of an engine, for whoever asks.
//
// Data flow: a door's request -> MujocoService -> MujocoPort -> the answer.
// Ownership: the host's; the thread that steps calls, between exchanges. It
// knows nothing of the door.
//
//   MujocoService service(engine->ports().mujoco, &simulation, num_envs);
//   service.SendControl(request, answer);
//   // after each exchange or step, before a door's calls:
//   service.AnswerWaiting();

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_MUJOCO_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_MUJOCO_SERVICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/ports/mujoco_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods: kInvalidArgument for environments that are not there. All
// allocate; none blocks.
class MujocoService {
 public:
  // Both ports outlive this.
  MujocoService(MujocoPort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetJointStateResponseT> GetJointState(
      const rpc::GetJointStateRequestT& request) const;

  absl::StatusOr<rpc::GetMujocoInfoResponseT> GetMujocoInfo(
      const rpc::GetMujocoInfoRequestT& request) const;

  // Answers at once, or by AnswerWaiting if the caller waits for the step.
  // Controls hold for each environment's next step, in place of its action's.
  // kInvalidArgument for no controls, more than there are actuators, an
  // actuator that is not there or a control that is no finite number; nothing
  // is written then.
  void SendControl(const rpc::SendControlRequestT& request,
                   RpcAnswer<rpc::SendControlResponseT> answer);

  // A GetJointStateResponse for each new moment.
  absl::StatusOr<RpcStream> StreamJointState(
      const rpc::GetJointStateRequestT& request) const;

  // Answers the SendControls that waited for a step and have had one.
  void AnswerWaiting();
  // Who waited has left.
  void ForgetWaiting() { waiting_.clear(); }

 private:
  struct Waiting {
    uint64_t steps;  // when it came
    rpc::SendControlResponseT response;
    RpcAnswer<rpc::SendControlResponseT> answer;
  };
  using Controls = std::map<uint32_t, float>;  // by actuator

  rpc::GetJointStateResponseT JointsOf(const std::vector<uint32_t>& envs,
                                       bool list) const;
  absl::StatusOr<uint32_t> ActuatorNamed(const std::string& name) const;
  absl::StatusOr<Controls> ControlsOf(
      const rpc::SendControlRequestT& request) const;
  absl::StatusOr<rpc::SendControlResponseT> Write(
      const rpc::SendControlRequestT& request);

  MujocoPort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
  std::vector<Waiting> waiting_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_MUJOCO_SERVICE_H_

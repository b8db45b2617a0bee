// MujocoService: joints and controls of an engine. TelemetryService: positions
// and controls, with the exchange number.
//
// Data flow: request -> service -> MujocoPort -> answer, or stream.
// Ownership: the host owns them; the stepping thread calls them between
// exchanges. The services do not depend on the RPC rings.
//
//   MujocoService service(engine->ports().mujoco, &simulation, num_envs);
//   service.SendControl(request, answer);
//   // after each exchange or step, before other calls:
//   service.AnswerWaiting();

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods: kInvalidArgument for invalid environments. All allocate; none
// blocks.
class MujocoService {
 public:
  // Both ports must outlive this object.
  MujocoService(MujocoPort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetJointStateResponseT> GetJointState(
      const rpc::GetJointStateRequestT& request) const;

  absl::StatusOr<rpc::GetMujocoInfoResponseT> GetMujocoInfo(
      const rpc::GetMujocoInfoRequestT& request) const;

  // Answers at once, or by AnswerWaiting if the caller waits for the step. A
  // control replaces the action's value in the environment's next step.
  // kInvalidArgument for no controls, more controls than actuators, an invalid
  // actuator, or a control that is not finite; no control was written then.
  void SendControl(const rpc::SendControlRequestT& request,
                   RpcAnswer<rpc::SendControlResponseT> answer);

  // Streams a GetJointStateResponse after each change.
  absl::StatusOr<RpcStream> StreamJointState(
      const rpc::GetJointStateRequestT& request) const;

  // Answers the SendControls that waited for a step, after that step.
  void AnswerWaiting();
  // Drops the waiting SendControls whose caller has left.
  void ForgetCancelled();

 private:
  struct Waiting {
    uint64_t steps;  // steps() when the request arrived
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

// All methods allocate; none blocks.
class TelemetryService {
 public:
  // Both ports must outlive this object.
  TelemetryService(const MujocoPort* port, const SimulationPort* simulation,
                   uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetTelemetrySchemaResponseT> GetTelemetrySchema(
      const rpc::GetTelemetrySchemaRequestT& request) const;

  // Streams, after each change, a TelemetryFrame for each of the environments,
  // in their order, all with the same numbers and time. kInvalidArgument for an
  // invalid environment.
  absl::StatusOr<RpcStream> StreamTelemetry(
      const rpc::StreamTelemetryRequestT& request) const;

 private:
  std::vector<rpc::PayloadUnion> FramesOf(const std::vector<uint32_t>& envs,
                                          uint32_t number) const;

  const MujocoPort* port_;
  const SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

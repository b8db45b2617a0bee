// MujocoPort: joints and actuators of an engine that has MuJoCo's state.
//
// Data flow: services mujoco and telemetry <-> MujocoPort <-> mjModel, mjData.
// Ownership: the engine's; the thread that steps calls, between exchanges.
//
//   rpc::JointStateT joints = port->Joints(env);

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_MUJOCO_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_MUJOCO_PORT_H_

#include <cstdint>
#include <string>
#include <vector>

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct JointStateT;
}  // namespace tandem::rpc

namespace tandem {

class MujocoPort {
 public:
  struct Actuator {
    std::string name;  // empty: it has none
    // To which a control is moved unless the caller wants it as it is;
    // infinite: not limited.
    float low;
    float high;
  };
  // The same for all environments.
  struct Info {
    uint32_t nq;
    uint32_t nv;
    std::vector<std::string> joint_names;     // empty text: it has none
    std::vector<std::string> position_names;  // nq of them
    std::vector<Actuator> actuators;          // nu of them
  };

  virtual ~MujocoPort() = default;

  virtual const Info& info() const = 0;

  // As the last step or reset left them; env_id is set.
  virtual rpc::JointStateT Joints(uint32_t env) const = 0;

  // What the last step was told, nu of them, or what was set since; without
  // the offsets that a contract puts on motors.
  virtual std::vector<float> Controls(uint32_t env) const = 0;

  // This actuator's control in the next step, in place of its action's.
  virtual void SetControl(uint32_t env, uint32_t actuator, float value) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_MUJOCO_PORT_H_

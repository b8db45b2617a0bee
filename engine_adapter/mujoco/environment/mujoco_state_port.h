// MujocoStatePort: the joints, the controls and the model of MuJoCo
// environments.
//
// Data flow: services mujoco and telemetry <-> MujocoStatePort <-> mjModel,
// mjData.
// Ownership: the engine owns it, beside the environments that it points to.
//
//   MujocoStatePort port(environments);
//   std::vector<float> positions = port.Joints(/*env=*/3).positions;

#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A joint with several positions has several names: its name with _x, _y, _z
// (metres) and _qw, _qx, _qy, _qz (its quaternion). A joint without a name is
// "joint 3".
class MujocoStatePort final : public MujocoPort, public MujocoModelPort {
 public:
  // At least one environment, all with one model.
  explicit MujocoStatePort(std::vector<MujocoEnvironment*> environments);

  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t env) const override;
  std::vector<float> Controls(uint32_t env) const override;
  // For any control, MuJoCo itself limits the effect of a limited actuator.
  void SetControl(uint32_t env, uint32_t actuator, float value) override {
    environments_[env]->SetControl(actuator, value);
  }
  MujocoModelPort* model() override { return this; }

  rpc::GetModelInfoResponseT Model() const override;
  // Those of the environment's own model, if a contract has changed it.
  std::vector<rpc::ActuatorGainInfoT> Gains(uint32_t env) const override;
  rpc::FullStateT State(uint32_t env) const override;
  // MuJoCo normalises quaternions.
  void SetPositions(uint32_t env,
                    const std::map<uint32_t, float>& positions) override;

 private:
  std::vector<MujocoEnvironment*> environments_;
  Info info_;
};

}  // namespace tandem

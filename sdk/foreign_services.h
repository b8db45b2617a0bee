// ForeignServices: what an engine on the other side of the C interface has
// besides steps, as the ports of the RPC services.
//
// Data flow: services -> a port -> a function of the program's tandem_services;
// a contract -> the RESETs of its environments.
// Ownership: ForeignEngine owns it. The stepping thread calls it between
// exchanges.
//
//   TANDEM_ASSIGN_OR_RETURN(auto services, ForeignServices::Make(
//       *options.services, num_envs, task, result_of, &draws));
//   EnginePorts ports = services->ports();

#ifndef TANDEM_SDK_FOREIGN_SERVICES_H_
#define TANDEM_SDK_FOREIGN_SERVICES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/task_description.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/foreign_draws.h"
#include "sdk/foreign_scene.h"
#include "sdk/tandem.h"

namespace tandem {

class ForeignServices final : private ScenePort,
                              private MujocoPort,
                              private DebugPort,
                              private RandomizationPort,
                              private StatePort {
 public:
  // The status of what a function of the program has returned.
  using ResultOf = std::function<absl::Status(int32_t result)>;

  // Copies texts and lists. kInvalidArgument: a function or a name is missing,
  // or a contract has no such field. `draws` must outlive this object.
  static absl::StatusOr<std::unique_ptr<ForeignServices>> Make(
      const tandem_services& given, uint32_t num_envs, std::string task,
      ResultOf result_of, ForeignDraws* draws);

  // Those that the engine has, but MethodPort and OwnMethodPort.
  EnginePorts ports();
  // nullptr: the engine has no live scene.
  ForeignScene* live_scene() { return live_scene_ ? &*live_scene_ : nullptr; }
  // nullptr: the engine draws none.
  ForeignFrames* frames() { return frames_ ? &*frames_ : nullptr; }
  const std::vector<OwnMethod>& own_methods() const { return own_methods_; }

  // Removes contracts, marks and staged states.
  void ClearClientState();
  // Puts the environment's staged state in place, instead of a reset; false:
  // there is none. An error is that of load_state.
  absl::StatusOr<bool> LoadStaged(uint32_t env);
  // The contract by which the environment's next reset draws; nullptr: none.
  // Valid until the next call. Later calls say that its stream continues.
  const tandem_contract* TakeContract(uint32_t env);
  bool has_contracts() const { return has_contracts_; }

 private:
  struct Named {
    std::string name;
    std::vector<std::string> components;
  };
  // The ranges of a contract, with their texts.
  struct Ranges {
    std::vector<std::string> texts;
    std::vector<tandem_range> ranges;
    std::string packed;  // the whole contract, for states
  };
  struct OfEnv {
    std::shared_ptr<const Ranges> ranges;  // nullptr: no contract
    tandem_contract contract = {};
    bool taken = false;  // by a reset
  };
  struct Staged {
    OfEnv contract;
    std::string state;  // for load_state
  };

  ForeignServices(const tandem_services& given, uint32_t num_envs,
                  std::string task, ResultOf result_of)
      : given_(given),
        scene_name_(given.scene_name == nullptr ? std::move(task)
                                                : given.scene_name),
        result_of_(std::move(result_of)),
        canvas_(num_envs),
        contracts_(num_envs) {}

  absl::Status ReadScene();
  absl::Status ReadJoints();
  absl::Status ReadCameras(ForeignDraws* draws);
  absl::Status ReadContractFields();
  absl::Status ReadOwnMethods();
  absl::Status Show(uint32_t env);
  // Adds the names of fields without effect to `unused`.
  absl::StatusOr<std::shared_ptr<const Ranges>> RangesOf(
      const rpc::SimulationContractT& contract,
      std::vector<std::string>* unused) const;
  static OfEnv ByContract(const std::shared_ptr<const Ranges>& ranges,
                          uint64_t seed);
  rpc::EntityInfoT InfoOf(uint32_t env, uint32_t index, Wanted wanted) const;

  // ScenePort.
  std::string scene_name() const override { return scene_name_; }
  std::string scene_path() const override { return ""; }
  uint32_t entity_count() const override {
    return static_cast<uint32_t>(entities_.size());
  }
  std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                         Wanted wanted) const override;
  std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                         uint64_t id) const override;
  std::optional<uint64_t> IdOf(absl::string_view name) const override;
  absl::Status SetTransform(uint32_t env, uint64_t id,
                            const rpc::TransformT& transform) override;
  // MujocoPort.
  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t env) const override;
  std::vector<float> Controls(uint32_t env) const override;
  void SetControl(uint32_t env, uint32_t actuator, float value) override;
  // DebugPort.
  absl::Status Draw(const rpc::DebugDrawRequestT& request) override;
  void Clear() override;
  // RandomizationPort.
  absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) override;
  // StatePort.
  std::string Fingerprint() const override;
  absl::Status Save(uint32_t env, std::string* state) override;
  absl::Status Stage(uint32_t env, absl::string_view state) override;
  void Discard(uint32_t env) override { staged_.erase(env); }

  const tandem_services given_;  // its lists and texts may be gone
  const std::string scene_name_;
  const ResultOf result_of_;
  std::vector<Named> entities_;
  Info info_ = {};
  std::vector<std::string> contract_fields_;
  std::vector<OwnMethod> own_methods_;
  std::optional<ForeignFrames> frames_;
  std::optional<ForeignCamera> camera_;
  std::optional<ForeignScene> live_scene_;
  DebugCanvas canvas_;
  std::vector<OfEnv> contracts_;  // [num_envs]
  bool has_contracts_ = false;    // of any environment
  std::map<uint32_t, Staged> staged_;
};

}  // namespace tandem

#endif  // TANDEM_SDK_FOREIGN_SERVICES_H_

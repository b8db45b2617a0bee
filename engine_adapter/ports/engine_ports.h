// EnginePorts: the interfaces that an engine may implement for the services.
//
// Data flow: Engine::ports() -> EngineHost -> the services <-> the interfaces.
// Ownership: the engine's, for as long as it lives; the stepping thread calls,
// between exchanges.
//
//   EnginePorts MyEngine::ports() { return {.scene = &scene_}; }

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/frames/image.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct CameraInfoT;
struct DebugDrawRequestT;
struct EntityInfoT;
struct JointStateT;
struct SimulationContractT;
struct TransformT;
}  // namespace tandem::rpc

namespace tandem {

struct ImageRequest {
  uint32_t env = 0;
  // Of Cameras(), by index, or of Viewports().
  bool of_viewport = false;
  uint32_t index = 0;
  uint32_t width = 0;  // pixels; 0: the camera's or viewport's own
  uint32_t height = 0;
  bool depth = false;
  ImageFormat format = ImageFormat::kRaw;
};

// Images of environments, through cameras of their models and through viewports
// (services camera and viewport): Draw copies the current state; the engine's
// render thread calls `done`.
class CameraPort {
 public:
  virtual ~CameraPort() = default;

  // The same in every environment; ids are those of their entities.
  virtual const std::vector<rpc::CameraInfoT>& Cameras() const = 0;
  // Their names, at least one.
  virtual const std::vector<std::string>& Viewports() const = 0;

  // Copies the environment's current state, and returns; the render thread
  // calls `done` once, with the image or kUnsupported (says what the machine
  // lacks) or kEngineFailed. Once `wanted` has expired, the engine may drop the
  // request without a call of `done`. Errors, without a call of `done`:
  // kInvalidArgument for an invalid size; kRingFull if too many requests are
  // under way, Image::held included: the caller may ask again.
  using Done = std::function<void(absl::StatusOr<Image>)>;
  virtual absl::Status Draw(const ImageRequest& request,
                            std::weak_ptr<const void> wanted, Done done) = 0;
};

// Lines and arrows in every later image for people (service debug): in frames,
// cameras and viewports, not in the observations' images.
class DebugPort {
 public:
  virtual ~DebugPort() = default;

  // Into request.env_id, which exists. kInvalidArgument for numbers that are
  // not finite, or too many marks; nothing has changed then.
  virtual absl::Status Draw(const rpc::DebugDrawRequestT& request) = 0;

  // Removes all marks from all environments.
  virtual void Clear() = 0;
};

// Joints and actuators of an engine that has MuJoCo's state (services mujoco
// and telemetry).
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

  // The last step's controls, nu of them, or what was set since; without
  // the offsets that a contract puts on motors.
  virtual std::vector<float> Controls(uint32_t env) const = 0;

  // This actuator's control in the next step, in place of its action's.
  virtual void SetControl(uint32_t env, uint32_t actuator, float value) = 0;
};

// Contracts (service agent): ResetAgent calls SetContract; each environment
// draws at its next reset.
class RandomizationPort {
 public:
  virtual ~RandomizationPort() = default;

  // From its next reset on, each of these environments draws from the contract
  // at each reset; with nullptr, it is as the task defines it. Environment i
  // has a random stream of its own, with the seed *seed + i; without a seed the
  // engine chooses. Returns the given fields without effect on the task, by
  // their names in the schema. kInvalidArgument for an invalid range: names the
  // field; no environment has changed then.
  virtual absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) = 0;
};

// Entities (service scene). Ids count from 1, are the same in every
// environment, and do not change.
class ScenePort {
 public:
  struct Wanted {
    bool transforms = false;
    bool components = false;
  };

  virtual ~ScenePort() = default;

  virtual std::string scene_name() const = 0;
  virtual std::string scene_path() const = 0;  // empty: there is no file
  virtual uint32_t entity_count() const = 0;

  // Ordered by id. Transforms are in the world, as the last step or reset left
  // them.
  virtual std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                                 Wanted wanted) const = 0;

  // With all there is; nothing: no such entity.
  virtual std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                                 uint64_t id) const = 0;
  // The first of that name; nothing: there is none.
  virtual std::optional<uint64_t> IdOf(absl::string_view name) const = 0;

  // Moves an entity that exists, in this environment only. Later reads of its
  // transform return the new one. Absent parts stay as they are. kUnsupported
  // if the entity cannot be moved in this way, or scaled; kInvalidArgument for
  // an invalid position or rotation.
  virtual absl::Status SetTransform(uint32_t env, uint64_t id,
                                    const rpc::TransformT& transform) = 0;
};

// nullptr: not implemented; the services say so.
struct EnginePorts {
  RandomizationPort* randomization = nullptr;
  MujocoPort* mujoco = nullptr;
  ScenePort* scene = nullptr;
  CameraPort* camera = nullptr;
  DebugPort* debug = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_

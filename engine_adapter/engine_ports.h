// EnginePorts: the interfaces that an engine may implement for the RPC
// services.
//
// Data flow: Engine::ports() -> EngineHost -> the services <-> the interfaces.
// Ownership: the engine owns the ports for its lifetime. The stepping thread
// calls them between exchanges.
//
//   EnginePorts MyEngine::ports() { return {.scene = &scene_}; }

#pragma once

#include <cstddef>
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
#include "engine_adapter/image.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct ActuatorGainInfoT;
struct CameraInfoT;
struct DebugDrawRequestT;
struct EntityInfoT;
struct FullStateT;
struct GetModelInfoResponseT;
struct JointStateT;
struct SimulationContractT;
struct TransformT;
enum class MethodId : uint16_t;
}  // namespace tandem::rpc

namespace tandem {

struct ImageRequest {
  uint32_t env = 0;
  // `index` is an index of Viewports() if true, else of Cameras().
  bool of_viewport = false;
  uint32_t index = 0;
  uint32_t width = 0;  // pixels; 0: the default width
  uint32_t height = 0;
  bool depth = false;
  ImageFormat format = ImageFormat::kRaw;
};

// Images of environments, from cameras of their models and from viewports
// (services camera and viewport). Draw copies the current state; the engine's
// render thread renders it and calls `done`. ImageQueue is such a thread.
class CameraPort {
 public:
  virtual ~CameraPort() = default;

  // The cameras, equal in every environment. Their ids are entity ids.
  virtual const std::vector<rpc::CameraInfoT>& Cameras() const = 0;
  // The names of the viewports, at least one.
  virtual const std::vector<std::string>& Viewports() const = 0;

  // Copies the environment's current state, and returns without a wait. The
  // render thread calls `done` once, with one of these:
  //  - the image;
  //  - kUnsupported: the machine cannot render; the text names the missing
  //    part;
  //  - kEngineFailed.
  //
  // After `wanted` has expired, the engine may drop the request without a call
  // of `done`. Errors of Draw, without a call of `done`:
  //  - kInvalidArgument: the size is invalid.
  //  - kUnsupported: this engine has no depth images.
  //  - kRingFull: too many requests are unanswered, Image::held included; the
  //    caller may try again.
  using Done = std::function<void(absl::StatusOr<Image>)>;
  virtual absl::Status Draw(const ImageRequest& request,
                            std::weak_ptr<const void> wanted, Done done) = 0;
};

// Lines and arrows in later images (service debug): in frames, and in images of
// cameras and viewports. The observations' images do not show them. DebugCanvas
// implements it.
class DebugPort {
 public:
  virtual ~DebugPort() = default;

  // Adds marks to the environment request.env_id, which the caller has checked.
  // kInvalidArgument for a number that is not finite, or too many marks; the
  // marks are unchanged then.
  virtual absl::Status Draw(const rpc::DebugDrawRequestT& request) = 0;

  // Removes all marks from all environments.
  virtual void Clear() = 0;
};

// The model and the complete state, for an engine that has MuJoCo's (service
// mujoco).
class MujocoModelPort {
 public:
  virtual ~MujocoModelPort() = default;

  // The joints and actuators, equal for all environments; without success.
  virtual rpc::GetModelInfoResponseT Model() const = 0;
  // Returns nu items.
  virtual std::vector<rpc::ActuatorGainInfoT> Gains(uint32_t env) const = 0;
  // Returns the state after the last step or reset, without frame_number.
  virtual rpc::FullStateT State(uint32_t env) const = 0;
  // Sets numbers of qpos, by their valid indices, and computes again what
  // depends on them. Later reads return the new state.
  virtual void SetPositions(uint32_t env,
                            const std::map<uint32_t, float>& positions) = 0;
};

// Joints and actuators of an engine with MuJoCo's state (services mujoco and
// telemetry).
class MujocoPort {
 public:
  struct Actuator {
    std::string name;  // empty: no name
    // A SendControl clips its value to this range by default. Infinite: no
    // limit.
    float low;
    float high;
  };
  // Equal for all environments.
  struct Info {
    uint32_t nq;
    uint32_t nv;
    std::vector<std::string> joint_names;     // empty text: no name
    std::vector<std::string> position_names;  // nq of them
    std::vector<Actuator> actuators;          // nu of them
  };

  virtual ~MujocoPort() = default;

  virtual const Info& info() const = 0;

  // Returns the joints after the last step or reset; env_id is set.
  virtual rpc::JointStateT Joints(uint32_t env) const = 0;

  // Returns nu controls: those of the last step, or later values of SetControl.
  // The motor offsets of a contract are not included.
  virtual std::vector<float> Controls(uint32_t env) const = 0;

  // Sets the actuator's control for the next step, in place of the action's
  // value.
  virtual void SetControl(uint32_t env, uint32_t actuator, float value) = 0;

  // nullptr: not implemented; calls of its methods get kUnsupported.
  virtual MujocoModelPort* model() { return nullptr; }
};

// Contracts (service agent). ResetAgent calls SetContract; each environment
// draws its physics at its next reset.
class RandomizationPort {
 public:
  virtual ~RandomizationPort() = default;

  // Sets the contract of these environments. At each later reset, an
  // environment draws from the contract. nullptr: the task's own physics.
  // Environment i has its own random stream with the seed *seed + i; without a
  // seed the engine chooses one. Returns the schema names of the given fields
  // that have no effect on the task. kInvalidArgument for an invalid range; the
  // text names the field. No environment has changed then.
  virtual absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) = 0;
};

// Entities (service scene). Ids begin at 1, are equal in every environment, and
// do not change.
class ScenePort {
 public:
  struct Wanted {
    bool transforms = false;
    bool components = false;
  };

  virtual ~ScenePort() = default;

  virtual std::string scene_name() const = 0;
  virtual std::string scene_path() const = 0;  // empty: no file
  virtual uint32_t entity_count() const = 0;

  // Returns the entities, ordered by id. Transforms are in world coordinates,
  // after the last step or reset.
  virtual std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                                 Wanted wanted) const = 0;

  // Returns the entity with its transform and components; nullopt if the id is
  // unknown.
  virtual std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                                 uint64_t id) const = 0;
  // Returns the first entity with this name; nullopt if the name is unknown.
  virtual std::optional<uint64_t> IdOf(absl::string_view name) const = 0;

  // Moves an existing entity, in this environment only. Later reads return the
  // new transform. `transform` has one field at least; absent ones stay
  // unchanged. kUnsupported if the engine cannot move or scale the entity in
  // this way; kInvalidArgument for an invalid position or rotation.
  virtual absl::Status SetTransform(uint32_t env, uint64_t id,
                                    const rpc::TransformT& transform) = 0;
};

// States of environments (RPCs SaveStates and LoadStates): all that decides an
// environment's future, besides its rows in the region and a pending autoreset,
// which the host saves.
class StatePort {
 public:
  virtual ~StatePort() = default;

  // What two engines have in common that can load one another's states, besides
  // task and formats of rows: such as the model, and versions of libraries.
  virtual std::string Fingerprint() const = 0;

  // Appends the environment's state. kUnsupported, with the reason; then the
  // appended bytes have no meaning.
  virtual absl::Status Save(uint32_t env, std::string* state) = 0;

  // Checks a state of an engine with this fingerprint, and keeps it until the
  // environment's next Stage, ClearClientState or Reset. That Reset puts it in
  // place and draws nothing; the host then replaces the rows. kInvalidArgument:
  // the state is invalid; nothing has changed.
  virtual absl::Status Stage(uint32_t env, absl::string_view state) = 0;
  // Drops a state that no Reset has used yet, if there is one.
  virtual void Discard(uint32_t env) = 0;
};

// Methods that the engine answers itself, from the bytes of the envelopes: for
// engines in other languages.
class MethodPort {
 public:
  // Answers the call with the bytes of an Envelope that has the method's answer
  // as payload; its method and correlation id are ignored. Or answers with an
  // error. The stepping thread calls it, now or later.
  //  - kInvalidArgument: the bytes are no such envelope. The call is still
  //    unanswered.
  //  - kMessageTooLarge: there are 2 GiB or more. The call is still unanswered.
  //  - kNoStepPending: it was answered already, or the caller has left or
  //    cancelled the call.
  using Answer =
      std::function<absl::Status(absl::StatusOr<std::span<const uint8_t>>)>;

  virtual ~MethodPort() = default;

  // The methods, all different; they precede those of other ports. Streams, and
  // the methods that reset environments, control time or switch services, are
  // not allowed: the host answers them.
  virtual const std::vector<rpc::MethodId>& Methods() const = 0;

  // Takes a verified envelope, valid during this call. After `wanted` has
  // expired, the answer has no effect.
  virtual void Handle(rpc::MethodId method, std::span<const uint8_t> envelope,
                      std::weak_ptr<const void> wanted, Answer answer) = 0;
};

// Methods that an engine defines itself (service own). Their names and content
// types are in its description.
class OwnMethodPort {
 public:
  // Answers the call, now or later: the bytes of the answer, valid during this
  // call, or an error. The stepping thread calls it. The caller gets
  // kMessageTooLarge in place of more than 64 MiB.
  using Answer = std::function<void(absl::StatusOr<std::span<const uint8_t>>)>;

  virtual ~OwnMethodPort() = default;

  // `method` is an index of TaskDescription::own_methods; `request` is valid
  // during this call. After `wanted` has expired, the answer has no effect.
  virtual void CallOwn(size_t method, std::span<const uint8_t> request,
                       std::weak_ptr<const void> wanted, Answer answer) = 0;
};

// nullptr: not implemented; calls of the interface's methods get kUnsupported.
struct EnginePorts {
  RandomizationPort* randomization = nullptr;
  MujocoPort* mujoco = nullptr;
  ScenePort* scene = nullptr;
  CameraPort* camera = nullptr;
  DebugPort* debug = nullptr;
  StatePort* states = nullptr;
  MethodPort* methods = nullptr;
  OwnMethodPort* own = nullptr;
};

}  // namespace tandem

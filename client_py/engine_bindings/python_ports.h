// PythonPorts: the interfaces of the RPC services for an engine in Python.
//
// Data flow: services -> a port -> the GIL -> a method of
// tandem.serving.adaptor.Adaptor -> the engine's optional method.
// Ownership: PythonEngine owns it. The stepping thread calls it between
// exchanges.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_py/engine_bindings/python_adaptor.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/image_queue.h"
#include "engine_adapter/scene_source.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

class PythonScene final : public ScenePort {
 public:
  explicit PythonScene(PythonAdaptor* adaptor);

  std::string scene_name() const override { return name_; }
  std::string scene_path() const override { return ""; }
  uint32_t entity_count() const override;
  std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                         Wanted wanted) const override;
  std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                         uint64_t id) const override;
  std::optional<uint64_t> IdOf(absl::string_view name) const override;
  absl::Status SetTransform(uint32_t env, uint64_t id,
                            const rpc::TransformT& transform) override;

 private:
  PythonAdaptor* adaptor_;
  std::string name_;
};

class PythonJoints final : public MujocoPort {
 public:
  explicit PythonJoints(PythonAdaptor* adaptor);

  const Info& info() const override { return info_; }
  rpc::JointStateT Joints(uint32_t env) const override;
  std::vector<float> Controls(uint32_t env) const override;
  void SetControl(uint32_t env, uint32_t actuator, float value) override;

 private:
  PythonAdaptor* adaptor_;
  Info info_;
};

// The marks of each environment, which the engine gets when they change.
class PythonDebug final : public DebugPort {
 public:
  PythonDebug(PythonAdaptor* adaptor, uint32_t num_envs)
      : adaptor_(adaptor), num_envs_(num_envs), canvas_(num_envs) {}

  absl::Status Draw(const rpc::DebugDrawRequestT& request) override;
  void Clear() override;

 private:
  absl::Status Show(uint32_t env);

  PythonAdaptor* adaptor_;
  uint32_t num_envs_;
  DebugCanvas canvas_;
};

// The engine renders in the stepping thread, between two exchanges; the queue's
// thread encodes the image without the GIL.
class PythonCamera final : public CameraPort {
 public:
  explicit PythonCamera(PythonAdaptor* adaptor);

  const std::vector<rpc::CameraInfoT>& Cameras() const override {
    return cameras_;
  }
  const std::vector<std::string>& Viewports() const override {
    return viewports_;
  }
  absl::Status Draw(const ImageRequest& request,
                    std::weak_ptr<const void> wanted, Done done) override;

 private:
  PythonAdaptor* adaptor_;
  std::vector<rpc::CameraInfoT> cameras_;
  std::vector<std::string> viewports_ = {"main"};  // the first camera's view
  uint32_t default_width_ = 0;
  uint32_t default_height_ = 0;
  ImageQueue queue_;
};

// Frames by the first camera: Capture renders, in the stepping thread, and Draw
// copies the pixels.
class PythonFrames final : public FrameSource {
 public:
  explicit PythonFrames(PythonAdaptor* adaptor) : adaptor_(adaptor) {}

  absl::Status Prepare(const FrameOptions& options) override;
  void Capture(uint32_t place) override;
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Draw(uint32_t place, const FrameTile& tile) override;
  void Stop() override {}

 private:
  PythonAdaptor* adaptor_;
  FrameOptions options_;
  std::string camera_;
  std::vector<absl::StatusOr<std::vector<uint8_t>>> images_;  // by place
};

// The engine's live scene: its file, and the poses of its nodes.
class PythonLiveScene final : public SceneSource {
 public:
  explicit PythonLiveScene(PythonAdaptor* adaptor) : adaptor_(adaptor) {}

  uint64_t Version(uint32_t env) override;
  Make Describe(uint32_t env) override;
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override;

 private:
  PythonAdaptor* adaptor_;
};

class PythonOwnMethods final : public OwnMethodPort {
 public:
  explicit PythonOwnMethods(PythonAdaptor* adaptor) : adaptor_(adaptor) {}

  void CallOwn(size_t method, std::span<const uint8_t> request,
               std::weak_ptr<const void> wanted, Answer answer) override;

 private:
  PythonAdaptor* adaptor_;
};

class PythonRandomization final : public RandomizationPort {
 public:
  explicit PythonRandomization(PythonAdaptor* adaptor) : adaptor_(adaptor) {}

  absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) override;

 private:
  PythonAdaptor* adaptor_;
};

class PythonStates final : public StatePort {
 public:
  explicit PythonStates(PythonAdaptor* adaptor) : adaptor_(adaptor) {}

  std::string Fingerprint() const override { return "of Python"; }
  absl::Status Save(uint32_t env, std::string* state) override;
  absl::Status Stage(uint32_t env, absl::string_view state) override;
  void Discard(uint32_t env) override { staged_.erase(env); }

  // Passes the environment's staged state to the engine; false: there is none.
  // Needs the GIL; the engine's exceptions pass.
  bool Load(uint32_t env);
  void Clear() { staged_.clear(); }

 private:
  PythonAdaptor* adaptor_;
  std::map<uint32_t, std::string> staged_;
};

class PythonPorts {
 public:
  // Needs the GIL. Makes the ports that Adaptor.ports names.
  PythonPorts(PythonAdaptor* adaptor, uint32_t num_envs);

  EnginePorts ports();
  // nullptr: the engine does not render.
  FrameSource* frames() { return frames_ ? &*frames_ : nullptr; }
  // nullptr: the engine has no live scene.
  SceneSource* live_scene() { return live_scene_ ? &*live_scene_ : nullptr; }
  // nullptr: the engine does not save states.
  PythonStates* states() { return states_ ? &*states_ : nullptr; }
  // Removes the marks and the staged states of all environments.
  void Clear();

 private:
  std::optional<PythonScene> scene_;
  std::optional<PythonJoints> joints_;
  std::optional<PythonDebug> debug_;
  std::optional<PythonCamera> camera_;
  std::optional<PythonRandomization> randomization_;
  std::optional<PythonFrames> frames_;
  std::optional<PythonLiveScene> live_scene_;
  std::optional<PythonOwnMethods> own_;
  std::optional<PythonStates> states_;
};

}  // namespace tandem

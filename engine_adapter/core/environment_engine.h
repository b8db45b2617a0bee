// EnvironmentEngine: an Engine that steps Environments on several threads.
//
// Data flow: exchange -> each environment's Reset or Step, in parallel.
// Ownership: the host's thread calls it. The same seeds and actions give the
// same results, bit by bit, with any number of threads.
//
//   std::vector<std::unique_ptr<Environment>> environments = ...;
//   EnvironmentEngine engine({.task = "Pendulum-v1", ...},
//                            std::move(environments), threads);

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/thread_pool.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/scene_source.h"

namespace tandem {

// The optional parts of an engine. They may point into its environments. The
// engine destroys them before the environments, the last member first.
struct EnvironmentFittings {
  double step_secs = 0;          // simulated seconds per step; 0: unknown
  std::string fingerprint = {};  // as StatePort's
  std::unique_ptr<RandomizationPort> randomization = {};
  std::unique_ptr<MujocoPort> mujoco = {};
  std::unique_ptr<ScenePort> scene = {};
  std::unique_ptr<DebugPort> debug = {};
  std::unique_ptr<CameraPort> camera = {};
  std::unique_ptr<FrameSource> frames = {};
  std::unique_ptr<FrameSource> images = {};
  std::unique_ptr<SceneSource> live_scene = {};
};

// The step that reaches the description's max_episode_steps truncates the
// episode; so does every later step until the reset. If an environment throws,
// the exchange fails with kEngineFailed. The text has the lowest index of such
// an environment, its error, and the number of further errors.
class EnvironmentEngine final : public Engine, private StatePort {
 public:
  // The constructor sets `schema.num_envs` to the number of environments.
  EnvironmentEngine(EngineSchema schema,
                    std::vector<std::unique_ptr<Environment>> environments,
                    int threads, EnvironmentFittings fittings = {});

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override;
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override;
  void ClearClientState() override;
  FrameSource* frames() override { return fittings_.frames.get(); }
  FrameSource* images() override { return fittings_.images.get(); }
  SceneSource* scene() override { return fittings_.live_scene.get(); }
  EnginePorts ports() override;
  double step_secs() const override { return fittings_.step_secs; }

 private:
  struct Env {
    std::unique_ptr<Environment> environment;
    EnvRandom random;
    uint32_t steps = 0;  // in this episode; stays at the limit
    // Puts a saved state in place of the next reset; nullptr: none is staged.
    std::function<void()> load = {};
  };

  std::string Fingerprint() const override { return fittings_.fingerprint; }
  absl::Status Save(uint32_t env, std::string* state) override;
  absl::Status Stage(uint32_t env, absl::string_view state) override;
  void Discard(uint32_t env) override { envs_[env].load = nullptr; }

  EnvironmentRow Row(uint32_t env, std::span<float> obs,
                     std::span<double> infos) const;
  void StepOne(uint32_t index, const StepIo& io);
  template <typename Call>
  void Guarded(uint32_t env, Call call);
  absl::Status TakeFailure();

  EngineSchema schema_;
  size_t info_size_;
  std::vector<Env> envs_;
  EnvironmentFittings fittings_;
  Mutex failure_mutex_;
  // Errors of the current exchange: their number, the lowest index, its error.
  uint32_t failures_ ABSL_GUARDED_BY(failure_mutex_) = 0;
  uint32_t failed_env_ ABSL_GUARDED_BY(failure_mutex_) = 0;
  std::string failure_ ABSL_GUARDED_BY(failure_mutex_);
  ThreadPool pool_;  // last: its threads use all of the above
};

}  // namespace tandem

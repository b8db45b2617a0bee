// EnvironmentEngine: an Engine of Environments, stepped on several threads.
//
// Data flow: exchange -> each environment's Reset or Step, in parallel.
// Ownership: the host's thread calls. The same seeds and actions give the same
// results, bit by bit, whatever the number of threads.
//
//   std::vector<std::unique_ptr<Environment>> environments = ...;
//   EnvironmentEngine engine({.task = "Pendulum-v1", ...},
//                            std::move(environments), threads);

#ifndef TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_ENGINE_H_
#define TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_ENGINE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/thread_pool.h"
#include "engine_adapter/frames/frame_source.h"
#include "engine_adapter/ports/engine_ports.h"

namespace tandem {

// What an engine may have beside its environments; it may point into them.
// Destroyed before them, in the order opposite to this.
struct EnvironmentFittings {
  double step_secs = 0;  // of simulated time; 0: not known
  std::unique_ptr<RandomizationPort> randomization = {};
  std::unique_ptr<MujocoPort> mujoco = {};
  std::unique_ptr<ScenePort> scene = {};
  std::unique_ptr<DebugPort> debug = {};
  std::unique_ptr<CameraPort> camera = {};
  std::unique_ptr<FrameSource> frames = {};
  std::unique_ptr<FrameSource> images = {};
};

// An environment is truncated by the step that reaches max_episode_steps of the
// schema's description, and by every later one until it is reset. What an
// environment throws fails the exchange with kEngineFailed; the text names the
// first one by index, and how many more threw.
class EnvironmentEngine final : public Engine {
 public:
  // `schema.num_envs` is taken from the number of environments.
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
  EnginePorts ports() override;
  double step_secs() const override { return fittings_.step_secs; }

 private:
  struct Env {
    std::unique_ptr<Environment> environment;
    EnvRandom random;
    uint32_t steps = 0;  // of this episode; stops at its limit
  };

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
  std::mutex failure_mutex_;
  // Guarded by failure_mutex_, of this exchange.
  uint32_t failures_ = 0;
  uint32_t failed_env_ = 0;  // the lowest index
  std::string failure_;      // its
  ThreadPool pool_;          // last: its threads use all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_ENVIRONMENT_ENGINE_H_

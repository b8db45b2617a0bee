// MujocoEngine: many environments of one Task, stepped on several threads.
//
// Data flow: actions (float32) -> mjData.ctrl -> Task -> obs, reward, end.
// Ownership: the host's thread calls; one mjModel is shared by all
// environments, each of which has its own mjData and random stream. The same
// seeds and actions give the same results, bit by bit, whatever the number of
// threads.
//
//   InstallMujocoLog(LogLine);
//   absl::StatusOr<std::unique_ptr<Task>> task = HalfCheetah::Create({});
//   auto engine = MujocoEngine::Create(*std::move(task), 64, 4);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENGINE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENGINE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/thread_pool.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/task.h"

namespace tandem {

// Values that cannot be, as MuJoCo handles them: an action row with a NaN, an
// infinity or a magnitude above 1e10 counts as a row of zeros; a state that
// becomes such is reset to the model's initial state and the episode goes on.
// Each is warned about once. An error of MuJoCo's fails the exchange with
// kEngineFailed; the environment is reset to the model's initial state.
class MujocoEngine final : public Engine {
 public:
  // kEngineFailed without memory for that many environments.
  static absl::StatusOr<std::unique_ptr<MujocoEngine>> Create(
      std::unique_ptr<Task> task, uint32_t num_envs, int threads);

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     std::span<float> obs) override;
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override;

 private:
  struct Env {
    DataPtr data;
    EnvRandom random;
    uint32_t steps = 0;  // of this episode; stops at its limit
  };

  MujocoEngine(std::unique_ptr<Task> task, std::vector<Env> envs, int threads);
  void ResetOne(const ResetRequest& request, std::span<float> obs);
  void StepOne(uint32_t index, const StepIo& io);
  void ApplyActions(std::span<const float> actions, mjData* data) const;
  template <typename Call>
  void Guarded(uint32_t index, Call call);
  absl::Status TakeFailure();

  std::unique_ptr<Task> task_;
  EngineSchema schema_;
  std::vector<Env> envs_;
  std::mutex failure_mutex_;
  std::string failure_;  // guarded by failure_mutex_; "": none
  ThreadPool pool_;      // last: its threads use all of the above
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENGINE_H_

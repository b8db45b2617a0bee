// WorkersScene: the SceneSource of environments in worker processes that have
// MuJoCo's model and data.
//
// Data flow: Ask -> the workers copy poses into shared memory between two
// exchanges, and save a model that is not drawn yet -> Capture. The saved model
// -> the engine's program, which has MuJoCo -> a GLB.
// Ownership: SupervisorHost owns it; its thread calls it. The caller owns the
// memory and the file, which must outlive it.
//
// Orders to the workers and their acknowledgements publish the memory, so no
// word of it is atomic. tandem.workers.scenes is the workers' half.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/scene_source.h"
#include "transport/pose_snapshot.h"

namespace tandem {

// The memory: this head; uint64[num_envs] `wanted` and `copied`; for each
// environment a row, as in a snapshot.
struct WorkersSceneHead {
  // The worker of the drawn environment writes all of it.
  uint64_t saves;    // of models into the file, by any worker
  uint64_t version;  // of what the last one draws
  double seconds;    // that its last copies took
  char mujoco[32];   // the version of its library
  char error[200];   // why there is none; empty: there is one
};
static_assert(sizeof(WorkersSceneHead) == 256);

class WorkersScene final : public SceneSource {
 public:
  // Rows have `nodes`. The workers write models into `model_file`, a path;
  // `program` is tandem-engine's.
  WorkersScene(std::span<std::byte> memory, uint32_t num_envs, uint32_t nodes,
               std::string model_file, std::string program);

  // Writes which environments are to be copied; the first one's model is drawn.
  void Ask(std::span<const uint32_t> envs);
  // Those of Ask; empty before it, and after Forget.
  const std::vector<uint32_t>& asked() const { return envs_; }
  // After an acknowledgement: whether the workers have copied all of them.
  bool HasCopied() const;
  // Seconds of a worker that the copies took.
  double seconds() const { return head_->seconds; }
  // Before the next Ask.
  void Forget() { envs_.clear(); }

  // SceneSource, while HasCopied. Poses beyond the nodes that an environment
  // has are NaN.
  uint64_t Version(uint32_t env) override;
  // kUnsupported: the model could not be saved, or is of another version of
  // MuJoCo than the program.
  Make Describe(uint32_t env) override;
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override;

 private:
  absl::StatusOr<SceneModel> Convert(const WorkersSceneHead& head);

  const uint32_t nodes_;
  const std::string model_file_;
  const std::string program_;
  const WorkersSceneHead* const head_;
  const std::span<uint64_t> wanted_;  // twice a number, + 1 for the drawn one
  const std::span<const uint64_t> copied_;
  const std::byte* const rows_;
  std::vector<uint32_t> envs_;
  uint64_t number_ = 0;
  uint64_t converted_ = 0;  // the save whose GLB is in the file; 0: none
};

}  // namespace tandem

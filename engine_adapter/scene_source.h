// SceneSource: the geometry of an engine's environments and their poses, for
// viewers that draw themselves.
//
// Data flow: the model -> Describe -> a GLB (scene thread) -> the scene's
// segment. An environment -> Capture (stepping thread) -> the scene thread's
// copy -> the segment's ring.
// Ownership: the engine owns its source. The host calls it only while a viewer
// watches.
//
//   class MyScene final : public SceneSource { ... };
//   SceneSource* MyEngine::scene() { return &scene_; }
//
// The GLB is glTF 2.0 in its binary form. scenes[0].extras.tandem says which
// nodes move, in the order of the poses: docs/protocol.md, "The live scene".
// GlbBuilder (engine_adapter/scene) writes such files.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "transport/pose_snapshot.h"

namespace tandem {

inline constexpr double kMaxSceneHz = 60;  // snapshots a second

struct SceneModel {
  std::string glb;
  uint32_t nodes = 0;  // that move
};

// The environments have one model. If they differ, such as by a contract, the
// scene is that of one of them. No call may throw.
class SceneSource {
 public:
  virtual ~SceneSource() = default;

  // The stepping thread calls this between two exchanges. Returns another
  // number when the environment is to be drawn by another GLB.
  virtual uint64_t Version(uint32_t env) = 0;

  // The stepping thread calls this after each change of Version. Takes
  // microseconds: what takes long belongs into the result, which the scene
  // thread calls once, while steps continue. So that must own or share what it
  // reads.
  using Make = std::function<absl::StatusOr<SceneModel>()>;
  virtual Make Describe(uint32_t env) = 0;

  // The stepping thread calls this between two exchanges. Writes the poses of
  // environment envs[i] into row i of `into`, which has room for the nodes of
  // the newest model. If the source knows the simulated time, it sets the row's
  // sim_time and clears kSceneUnknownTime; other numbers of the row may be
  // replaced by better ones. Changes no result of a step.
  virtual void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) = 0;
};

}  // namespace tandem

// Files of a recorded scene: a page that needs nothing else, and a GLB with an
// animation.
//
// Data flow: a scene's GLB and its snapshots of poses -> one file.
// Ownership: functions without state. The GLB is another program's: it is
// checked as far as it is changed.
//
// The page shows all recorded environments; a GLB has one, which other programs
// show: each moving node has a track of positions and one of rotations.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "viz/core/scene_watch.h"

namespace tandem {

struct SceneRecording {
  std::string name;  // of the run
  uint32_t nodes = 0;
  std::shared_ptr<const std::string> glb;
  std::vector<std::shared_ptr<const KeptPoses>> poses;  // oldest first

  // The entries of the watch's tape from `since_ns` on.
  static SceneRecording Of(const SceneWatch& watch, const std::string& name,
                           int64_t since_ns);
  // The least recorded environment; 0: none.
  uint32_t FirstEnv() const;
};

// Returns an HTML page that shows the recording, also when it is opened from
// disk.
std::string ReplayPage(const SceneRecording& recording);

// Returns the GLB with an animation of `env`, whose time begins with 0. A pose
// that is not finite is that of the moment before. kInvalidArgument: not a GLB
// with these nodes, or nothing of that environment was recorded.
absl::StatusOr<std::string> AnimatedGlb(const SceneRecording& recording,
                                        uint32_t env);

// Returns whether SaveScene can write a file there, before something is
// recorded for it. Errors: kInvalidArgument: another ending; the system's.
absl::Status CheckScenePath(const std::string& path);

// Writes a file, in place of an older one: by its ending .html, ReplayPage;
// .glb, AnimatedGlb of FirstEnv. Errors: CheckScenePath's; kInvalidArgument: no
// snapshot; those of AnimatedGlb and of the system. After an error an older
// file remains, and no part of a new one.
absl::Status SaveScene(const SceneRecording& recording,
                       const std::string& path);

}  // namespace tandem

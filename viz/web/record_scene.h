// RecordScene: records an engine's scene into a file, without a page.
//
// Data flow: SceneWatch, for some seconds -> SaveScene; lines of progress on
// standard error.
// Ownership: a program's main thread, which it blocks.

#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "viz/web/web_options.h"

namespace tandem {

// Waits for the first snapshot at most this time.
inline constexpr double kSceneWaitSecs = 15;

// Records options.envs of options.run for options.seconds, at most until `stop`
// is true or the engine has ended, and writes options.save. Errors:
// SaveScene's and PeekRegion's; kNotReady: no snapshot came, with the reason;
// kUnsupported: an engine without a scene.
absl::Status RecordScene(const WebOptions& options,
                         const std::atomic<bool>* stop);

}  // namespace tandem

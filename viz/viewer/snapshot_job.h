// SnapshotJob: implements --snapshot: waits for frames, saves the window, ends
// the event loop.
//
// Data flow: every tab's count of new frames -> the window as PNG -> exit code
// 0; or the deadline -> the missing frames on stderr -> exit code 1. Without
// --run it saves the list of runs after two scans, independent of the deadline.
// Ownership: main, while the event loop runs.

#pragma once

#include <QTimer>
#include <cstdint>
#include <string>

#include "viz/core/viewer_options.h"
#include "viz/viewer/viewer.h"

namespace tandem {

class SnapshotJob {
 public:
  // The viewer must have its window.
  SnapshotJob(const ViewerOptions& options, Viewer* viewer);

 private:
  void Poll();
  void Save();
  void Fail(const std::string& text);

  const ViewerOptions options_;
  Viewer* viewer_;
  int64_t begin_ns_;
  QTimer timer_;
};

}  // namespace tandem

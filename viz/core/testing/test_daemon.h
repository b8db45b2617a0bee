// TestDaemon: a real daemon of the slow lane with its own folder, and a run for
// it. The test's BUILD rule has //slow_lane/daemon:tandem-daemon as data.
//
//   TestDaemon daemon;
//   const DaemonClient client(daemon.target());
//   client.Submit(ConfigOf("echo $STEP; sleep 1000"));
//   daemon.Kill();
//   daemon.Start();

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "viz/core/daemon_client.h"

namespace tandem {

class TestDaemon {
 public:
  TestDaemon();
  TestDaemon(const TestDaemon&) = delete;
  TestDaemon& operator=(const TestDaemon&) = delete;
  // Also removes the folder.
  ~TestDaemon();

  // Returns before the daemon listens.
  void Start();
  void Kill();
  // Its folder's socket.
  std::string target() const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

// Returns the configuration of a run named "test" that executes a script of
// /bin/sh. The script's variable STEP is a step as a line of JSON, EPISODE an
// episode with a return of 1.5 and 3 steps.
std::string ConfigOf(absl::string_view script);

// Asks until `is_so` holds; a daemon that starts does not answer yet.
DaemonRuns AwaitRuns(const DaemonClient& client,
                     absl::FunctionRef<bool(const DaemonRuns&)> is_so);

// Waits until the daemon's one run has the state.
DaemonRun AwaitState(const DaemonClient& client, absl::string_view state);

}  // namespace tandem

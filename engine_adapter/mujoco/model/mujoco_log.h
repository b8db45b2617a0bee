// Converts MuJoCo's errors and warnings to exceptions and log lines.
//
// Data flow: libmujoco -> a handler -> an exception (errors), or a line of the
// log, once for each warning. Without the handler, libmujoco ends the process
// at an error and writes MUJOCO_LOG.TXT into the user's folder.
//
//   InstallMujocoLog(LogLine);
//   try { mj_step(model, data); } catch (const MujocoError& error) { ... }

#pragma once

#include <functional>
#include <stdexcept>

#include "absl/strings/string_view.h"

namespace tandem {

// The text of mju_error. It is thrown through libmujoco's frames: after it,
// only mj_resetData is legal for the mjData in use.
class MujocoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Installs the handlers for this process. The caller must call it before any
// other use of MuJoCo, from one thread. Any thread in which MuJoCo warns calls
// `warn`, one call at a time, once for each warning. Texts that differ only in
// numbers count as one warning. Information messages are dropped.
void InstallMujocoLog(std::function<void(absl::string_view)> warn);

// Passes a warning of Tandem's to `warn`, as MuJoCo's: once for each text.
void WarnOnce(absl::string_view text);

// While it exists, MuJoCo's warnings in this thread are dropped: for model
// files that the user cannot change. At most one exists at a time.
class MutedMujocoWarnings {
 public:
  MutedMujocoWarnings();
  ~MutedMujocoWarnings();
  MutedMujocoWarnings(const MutedMujocoWarnings&) = delete;
  MutedMujocoWarnings& operator=(const MutedMujocoWarnings&) = delete;
};

}  // namespace tandem

// MuJoCo's own errors and warnings, turned into ours.
//
// Data flow: libmujoco -> our handler -> exception (errors) or a line of the
// log, once each (warnings). Without it, libmujoco ends the process on an error
// and writes MUJOCO_LOG.TXT into the user's folder.
//
//   InstallMujocoLog(LogLine);
//   try { mj_step(model, data); } catch (const MujocoError& error) { ... }

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MUJOCO_LOG_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MUJOCO_LOG_H_

#include <functional>
#include <stdexcept>

#include "absl/strings/string_view.h"

namespace tandem {

// What mju_error said. Thrown through libmujoco's frames: an mjData that was
// being worked on is good for mj_resetData only.
class MujocoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of the whole process; call before any other use of MuJoCo, from one thread.
// `warn` is called from whatever thread MuJoCo warns in, one call at a time,
// once for each warning: texts that differ in numbers only count as the same.
// Mere information is dropped.
void InstallMujocoLog(std::function<void(absl::string_view)> warn);

// While it lives, MuJoCo's warnings in this thread are dropped: for model files
// that the user can do nothing about. One at a time.
class MutedMujocoWarnings {
 public:
  MutedMujocoWarnings();
  ~MutedMujocoWarnings();
  MutedMujocoWarnings(const MutedMujocoWarnings&) = delete;
  MutedMujocoWarnings& operator=(const MutedMujocoWarnings&) = delete;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_MUJOCO_LOG_H_

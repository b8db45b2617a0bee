#include "engine_adapter/mujoco/model/mujoco_log.h"

#include <mujoco/mujoco.h>

#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace tandem {
namespace {

// More than MuJoCo's own warnings. Texts from models can reach the limit.
constexpr size_t kMostWarnings = 256;

thread_local bool muted = false;

struct Warnings {
  Mutex mutex;
  std::function<void(absl::string_view)> warn ABSL_GUARDED_BY(mutex);
  std::set<std::string> seen ABSL_GUARDED_BY(mutex);
};

// Never destroyed: MuJoCo may warn until the process ends.
Warnings& TheWarnings() {
  static Warnings& warnings = *new Warnings;
  return warnings;
}

void Handle(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) throw MujocoError(message->subject);
  if (message->level != mjLOG_WARNING || muted) return;
  WarnOnce(absl::StrCat("MuJoCo warns: ", message->subject));
}

}  // namespace

void WarnOnce(absl::string_view text) {
  Warnings& warnings = TheWarnings();
  MutexLock lock(&warnings.mutex);
  if (!warnings.warn || warnings.seen.size() >= kMostWarnings) return;
  std::string kind(text);
  std::erase_if(kind, [](unsigned char c) { return absl::ascii_isdigit(c); });
  if (!warnings.seen.insert(std::move(kind)).second) return;
  warnings.warn(text);
}

void InstallMujocoLog(std::function<void(absl::string_view)> warn) {
  {
    Warnings& warnings = TheWarnings();
    MutexLock lock(&warnings.mutex);
    warnings.warn = std::move(warn);
    warnings.seen.clear();
  }
  mju_setLogHandler(Handle);
}

MutedMujocoWarnings::MutedMujocoWarnings() { muted = true; }
MutedMujocoWarnings::~MutedMujocoWarnings() { muted = false; }

}  // namespace tandem

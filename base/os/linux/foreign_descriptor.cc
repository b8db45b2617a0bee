#include "base/os/foreign_descriptor.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

// What forbids a process the descriptors of another one of the same user, and
// the next step. `scope` is kernel.yama.ptrace_scope.
std::string ForbiddenBy(int scope) {
  const std::string yama =
      absl::StrCat("Yama (kernel.yama.ptrace_scope is ", scope, "); ");
  switch (scope) {
    case 0:
      return "the engine's protection (PR_SET_DUMPABLE, capabilities), or a "
             "container's seccomp profile; run the container with "
             "--cap-add=SYS_PTRACE";
    case 1:
      return yama +
             "start the engine from this process, as tandem.launch_engine "
             "does, or let the engine call prctl(PR_SET_PTRACER, "
             "PR_SET_PTRACER_ANY), or set it to 0";
    case 2:
      return yama +
             "set it to 1 or 0, or give this process the capability "
             "CAP_SYS_PTRACE";
    default:
      return yama + "set it to 1 or 0 at the next boot, since 3 is final";
  }
}

int YamaScope() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope;
}

bool Maps(uint32_t pid, const SharedRegion::Id& memory) {
  // Behind the address, the permissions, the offset and the device.
  const std::string inode = absl::StrCat(" ", memory.inode, " ");
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, inode)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<UniqueFd> TakeDescriptor(uint32_t pid, uint32_t number,
                                        const SharedRegion::Id& mapped) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  int error = errno;
  if (process.valid()) {
    UniqueFd taken(
        static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    error = errno;
    if (taken.valid()) {
      if (Maps(pid, mapped)) return taken;
      error = ESRCH;
    }
  }
  switch (error) {
    case EBADF:
      return MakeError(ErrorCode::kNotReady, "that it is closed");
    case EPERM:
      return MakeError(
          ErrorCode::kAccessDenied,
          absl::StrCat("that this is forbidden by ", ForbiddenBy(YamaScope())));
    case ESRCH:
      return MakeError(ErrorCode::kUnsupported,
                       "no such process here with this region; start both in "
                       "one PID namespace");
    case ENOSYS:
      return MakeError(ErrorCode::kUnsupported,
                       "a system without pidfd_getfd; use Linux 5.6 or newer");
    default:
      return MakeSystemError("pidfd_getfd", absl::StrCat("process ", pid),
                             error);
  }
}

}  // namespace tandem

// EndWithParent: this process gets a signal when its parent ends, for any
// reason.
//
// Data flow: the parent's end -> the kernel -> the signal.
// Ownership: this process only; its children do not inherit it.
//
//   const pid_t parent = getpid();
//   if (fork() == 0) { EndWithParent(SIGKILL, parent); ... }
//
//   int main() { EndWithParent(SIGTERM, getppid()); ... }  // after an exec

#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

namespace tandem {

// `parent` is the parent's getpid(); after an exec, the getppid() of main's
// first line. If the parent has already ended, the signal comes at once.
inline void EndWithParent(int signal, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);
}

}  // namespace tandem

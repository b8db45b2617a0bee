// EndWithParent: this process gets a signal when its parent ends, for any
// reason.
//
// Data flow: the parent's end -> the kernel -> the signal.
// Ownership: this process alone; its own children inherit nothing of it.
//
//   const pid_t parent = getpid();
//   if (fork() == 0) { EndWithParent(SIGKILL, parent); ... }
//
//   int main() { EndWithParent(SIGTERM, getppid()); ... }  // after an exec

#ifndef TANDEM_PROGRAM_END_WITH_PARENT_H_
#define TANDEM_PROGRAM_END_WITH_PARENT_H_

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

namespace tandem {

// `parent` is its id as it knew it itself; after an exec, as the first line of
// main finds it. The signal comes at once if it has ended already.
inline void EndWithParent(int signal, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);
}

}  // namespace tandem

#endif  // TANDEM_PROGRAM_END_WITH_PARENT_H_

// Background: the priority of threads that draw beside the steps.
//
// Data flow: a render thread -> the kernel's scheduler.
//
//   GoToBackground();  // first thing in the thread

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_

#include <sys/resource.h>

namespace tandem {

// The steps' threads come before this one and those that a driver makes in it.
// A system call; refused or not, the thread goes on.
inline void GoToBackground() {
  constexpr int kNiceness = 19;
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_

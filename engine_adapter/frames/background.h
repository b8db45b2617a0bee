// Background: the priority of threads that draw beside the steps.
//
// Data flow: a render thread -> the kernel's scheduler.
//
//   GoToBackground(kNobodyWaits);  // first thing in the thread

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_

#include <sys/resource.h>

namespace tandem {

// Nice values. At 19 a thread gets a seventieth of a core that steps fill,
// which is right for pictures that somebody watches. A client that asked for
// one waits for it, with a deadline: there it is a quarter of a core.
inline constexpr int kNobodyWaits = 19;
inline constexpr int kClientWaits = 5;

// The steps' threads come before this one and those that a driver makes in it.
// A system call; refused or not, the thread goes on.
inline void GoToBackground(int niceness) {
  (void)setpriority(PRIO_PROCESS, 0, niceness);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_BACKGROUND_H_

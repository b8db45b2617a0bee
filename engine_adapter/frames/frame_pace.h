// FramePace: when the next frame is due. GoToBackground: the priority of
// threads that render.
//
// Data flow: the wanted rate, what each frame took and how long it stood in
// line for a core -> the time from which the next one may be drawn.
// Ownership: FrameThread's render thread.
//
//   FramePace pace(60);
//   const CoreWait line;
//   const int64_t begin_ns = MonotonicNanos(), before_ns = line.Nanos();
//   Draw();
//   pace.Drew(begin_ns, MonotonicNanos(), line.Nanos() - before_ns);
//   SleepUntil(pace.due_ns());

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_PACE_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_PACE_H_

#include <sys/resource.h>

#include <cstdint>

#include "transport/base/unique_fd.h"

namespace tandem {

// A frame that stood in line took its core from another thread, and in an
// engine's lock-step a step waits for its slowest thread: then frames are rare,
// and take a sixteenth of one core. A nice value alone isn't enough: while a
// render thread fills a core, however idle its class, Linux moves no second
// stepping thread there until the next tick, milliseconds later.
class FramePace {
 public:
  // `hz` frames a second at most; 0: no rate.
  explicit FramePace(double hz);

  // MonotonicNanos from which the next frame may be drawn.
  int64_t due_ns() const { return due_ns_; }
  int64_t period_ns() const { return period_ns_; }

  // A frame was drawn from `begin_ns` to `end_ns`, and stood in line for
  // `waited_ns` of that. Late frames are not made up for; those that a client
  // asked for, at whatever rate, put off the next one by a period at most.
  void Drew(int64_t begin_ns, int64_t end_ns, int64_t waited_ns);

 private:
  const int64_t period_ns_;
  int64_t due_ns_ = 0;
};

// How long the thread that made it has stood in line for a core.
class CoreWait {
 public:
  CoreWait();

  // Nanoseconds so far; 0 if the kernel doesn't tell. A system call.
  int64_t Nanos() const;

 private:
  UniqueFd file_;  // /proc/thread-self/schedstat
};

// The steps' threads come before this one and those that a driver makes in it.
// A system call; refused or not, the thread goes on.
inline void GoToBackground() {
  constexpr int kNiceness = 19;
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_FRAME_PACE_H_

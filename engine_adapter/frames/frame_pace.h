// FramePace: the time of the next frame.
//
// Data flow: the requested rate, the time of each frame and its wait for a core
// -> the time from which the next frame may be rendered. Ownership:
// FrameThread's render thread.
//
//   FramePace pace(60);
//   const CoreWait line;
//   const int64_t begin_ns = MonotonicNanos(), before_ns = line.Nanos();
//   Draw();
//   pace.Drew(begin_ns, MonotonicNanos(), line.Nanos() - before_ns);
//   SleepUntil(pace.due_ns());

#pragma once

#include <cstdint>

namespace tandem {

// If a render thread had to wait for a core, cores are scarce. Then it takes
// core time from a stepping thread, and a lock-step waits for its slowest
// thread. So frames become rare: rendering takes a sixteenth of one core. A
// nice value alone is not sufficient. While a render thread fills a core, even
// in an idle class, Linux moves no second stepping thread there until the next
// tick, milliseconds later.
class FramePace {
 public:
  // At most `hz` frames a second; 0: no rate. `complete`: also on scarce cores.
  explicit FramePace(double hz, bool complete = false)
      : period_ns_(hz > 0 ? static_cast<int64_t>(1e9 / hz) : 0),
        complete_(complete) {}

  // The MonotonicNanos() from which the next frame may be rendered.
  int64_t due_ns() const { return due_ns_; }
  int64_t period_ns() const { return period_ns_; }

  // Records a frame that was rendered from `begin_ns` to `end_ns`, and waited
  // for a core for `waited_ns` of that time. Late frames are not repeated.
  // Frames that a client requested, at any rate, delay the next one by at most
  // one period.
  void Drew(int64_t begin_ns, int64_t end_ns, int64_t waited_ns);

 private:
  const int64_t period_ns_;
  const bool complete_;
  int64_t due_ns_ = 0;
};

}  // namespace tandem

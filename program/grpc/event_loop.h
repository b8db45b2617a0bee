// EventLoop: one thread that runs tasks, timers and handlers of ready
// descriptors one after the other. So data that only they use needs no lock.
//
// Data flow: any thread posts a task, epoll wakes the loop's thread, which runs
// it.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/os/unique_fd.h"

namespace tandem {

// Any thread may call Post, also after Stop; then the task is dropped and
// destroyed. Only the loop's own thread calls After, Cancel, Watch and Unwatch.
// Another thread calls Stop, once; the destructor does it, too.
class EventLoop {
 public:
  using Task = absl::AnyInvocable<void()>;
  using TimerId = std::pair<int64_t, uint64_t>;

  // Starts the thread, named `name` (at most 15 bytes) for ps and gdb. `now_ns`
  // is the timers' clock. After its own has advanced, a test posts a task; the
  // loop then runs the timers that are due.
  explicit EventLoop(const std::string& name,
                     std::function<int64_t()> now_ns = &MonotonicNanos);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs `task` after all earlier posted tasks. Never blocks.
  void Post(Task task);

  // Runs `task` once, `delay` from now.
  TimerId After(absl::Duration delay, Task task);
  // Has no effect on a timer that has run.
  void Cancel(TimerId timer);

  // Runs `ready` whenever `fd` is readable, until Unwatch. The caller must call
  // Unwatch before it closes `fd`.
  void Watch(int fd, Task ready);
  // Runs `ended` when the peer of the socket `fd` has closed the connection, or
  // this process has shut it down; received bytes do not wake the loop. Runs it
  // repeatedly until Unwatch.
  void WatchEnd(int fd, Task ended);
  void Unwatch(int fd);

  // Ends the thread after its taken tasks: those posted before it last took
  // some, and handlers of ready descriptors. Later tasks are dropped.
  void Stop();

 private:
  void Run();
  void Add(int fd, uint32_t events, Task task);
  // Runs due timers; returns the timeout for epoll_wait in milliseconds.
  int RunTimers();
  void RunPosted();

  const std::function<int64_t()> now_ns_;
  const UniqueFd epoll_;
  const UniqueFd wake_;  // an eventfd
  Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Only the loop's thread uses these.
  std::map<TimerId, Task> timers_;
  uint64_t last_timer_ = 0;
  // Each watch has its own number, so a late event is not assigned to a later
  // watch of the same descriptor number.
  std::map<int, uint64_t> watches_;
  std::map<uint64_t, Task> watched_;
  uint64_t last_watch_ = 0;
  std::thread thread_;
};

}  // namespace tandem

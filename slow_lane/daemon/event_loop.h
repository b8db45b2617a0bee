// EventLoop: one thread that runs tasks, timers and answers to ready
// descriptors, one after the other, so that what they share needs no lock.
//
// Data flow: any thread posts, epoll wakes, the loop's thread runs.
//
// The supervisor of runs and the hub of watchers have one each.
//
//   EventLoop loop("runs");
//   loop.Post([&] { ++seen; });
//   loop.After(absl::Seconds(1), [&] { CheckHeartbeats(); });
//   loop.Stop();

#ifndef TANDEM_SLOW_LANE_DAEMON_EVENT_LOOP_H_
#define TANDEM_SLOW_LANE_DAEMON_EVENT_LOOP_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// Calls: Post from any thread, also after Stop (the task is then dropped, and
// destroyed). After, Cancel, Watch and Unwatch from the loop's own thread only.
// Stop once, from another thread; the destructor does it, too.
class EventLoop {
 public:
  using Task = absl::AnyInvocable<void()>;
  using TimerId = std::pair<int64_t, uint64_t>;

  // Starts the thread, named `name` (at most 15 bytes) for ps and gdb.
  explicit EventLoop(const std::string& name);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs `task` after all that were posted before. Never blocks.
  void Post(Task task);

  // Runs `task` once, `delay` from now by the monotonic clock.
  TimerId After(absl::Duration delay, Task task);
  // No effect on a timer that has run.
  void Cancel(TimerId timer);

  // Runs `ready` whenever `fd` is readable, until Unwatch, which comes before
  // `fd` is closed.
  void Watch(int fd, Task ready);
  void Unwatch(int fd);

  // Ends the thread after the tasks that it has taken: those posted before it
  // last took some, and those of ready descriptors. Later ones are dropped.
  void Stop();

 private:
  void Run();
  // Milliseconds for epoll_wait; runs what is due.
  int RunTimers();
  void RunPosted();

  const UniqueFd epoll_;
  const UniqueFd wake_;  // an eventfd
  std::mutex mutex_;     // guards posted_, stopped_
  std::vector<Task> posted_;
  bool stopped_ = false;
  // Touched by the loop's thread only.
  std::map<TimerId, Task> timers_;
  uint64_t last_timer_ = 0;
  // Each watch has a number of its own: an event that comes late is not taken
  // for one of a later watch of the same descriptor number.
  std::map<int, uint64_t> watches_;
  std::map<uint64_t, Task> watched_;
  uint64_t last_watch_ = 0;
  std::thread thread_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_EVENT_LOOP_H_

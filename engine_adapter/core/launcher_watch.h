// LauncherWatch: notices that the process which launched this one is gone.
//
// Data flow: launcher closes its end of a pipe, or dies -> poll -> callback.
// Ownership: one thread of its own, from construction to destruction.
//
//   LauncherWatch watch(read_end, [&] { host->RequestStop(); });

#ifndef TANDEM_ENGINE_ADAPTER_CORE_LAUNCHER_WATCH_H_
#define TANDEM_ENGINE_ADAPTER_CORE_LAUNCHER_WATCH_H_

#include <atomic>
#include <functional>
#include <thread>

#include "transport/base/unique_fd.h"

namespace tandem {

// Takes no signals and, until its end, no processor time.
class LauncherWatch {
 public:
  // Calls `on_left` once, from its own thread, when nobody holds the other end
  // of `pipe_fd` any more. What is written into the pipe is thrown away.
  LauncherWatch(int pipe_fd, std::function<void()> on_left);
  // Waits for the thread.
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

  bool HasLeft() const;

 private:
  void Watch();

  UniqueFd pipe_;
  UniqueFd stop_;  // an eventfd
  std::function<void()> on_left_;
  // Writer: the thread; readers: any. A flag for people.
  std::atomic<bool> left_{false};
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_LAUNCHER_WATCH_H_

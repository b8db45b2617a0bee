// LauncherWatch: notices that the process which launched this one is gone.
//
// Data flow: launcher closes its end of a pipe, or dies -> poll -> callback ->
// a while later, unless this object was destroyed by then -> other callback.
// Ownership: one thread of its own, from construction to destruction.
//
//   LauncherWatch watch(read_end, [&] { host->RequestStop(); },
//                       [&] { host->RemoveName(); _exit(1); });

#ifndef TANDEM_ENGINE_ADAPTER_HOST_LAUNCHER_WATCH_H_
#define TANDEM_ENGINE_ADAPTER_HOST_LAUNCHER_WATCH_H_

#include <atomic>
#include <functional>
#include <thread>

#include "transport/base/unique_fd.h"

namespace tandem {

// Takes no signals and, until its end, no processor time.
class LauncherWatch {
 public:
  // How long the server may take to stop.
  static constexpr int kGraceMs = 500;

  // Calls `on_left` once, from its own thread, when no process holds the other
  // end of `pipe_fd` any more; and `on_stuck` if this object still lives
  // kGraceMs later. What is written into the pipe is thrown away.
  LauncherWatch(int pipe_fd, std::function<void()> on_left,
                std::function<void()> on_stuck);
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
  std::function<void()> on_stuck_;
  // Writer: the thread; readers: any. A flag for people.
  std::atomic<bool> left_{false};
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_LAUNCHER_WATCH_H_

// LauncherWatch: detects the end of the launcher, the process that started this
// one.
//
// Data flow: the launcher closes its end of a pipe, or dies -> poll -> on_left
// -> kGraceMs later, if this object still exists -> on_stuck. Ownership: the
// object has one thread, from construction to destruction.
//
//   LauncherWatch watch(read_end, [&] { host->RequestStop(); },
//                       [&] { host->RemoveName(); std::_Exit(1); });

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/os/unique_fd.h"

namespace tandem {

// Its thread blocks all signals, and uses no processor time while it waits.
class LauncherWatch {
 public:
  // The time that the server has to stop.
  static constexpr int kGraceMs = 500;

  // The watch's thread calls `on_left` once, after the last process has closed
  // the other end of `pipe_fd`. It calls `on_stuck` if this object still exists
  // kGraceMs later. The thread discards data from the pipe. Ends the program if
  // it has no file descriptor left.
  LauncherWatch(int pipe_fd, std::function<void()> on_left,
                std::function<void()> on_stuck);
  // Blocks until the thread has ended. A forked child's has no effect on it.
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

  bool HasLeft() const;

 private:
  void Watch();

  const uint32_t born_in_;  // ForkCount() of the process with the thread
  UniqueFd pipe_;
  UniqueFd stop_;
  std::function<void()> on_left_;
  std::function<void()> on_stuck_;
  // Writer: the watch's thread; readers: any thread. A flag for display.
  std::atomic<bool> left_{false};
  std::thread thread_;
};

}  // namespace tandem

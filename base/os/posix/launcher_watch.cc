#include "base/os/launcher_watch.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/os/blocked_signals.h"
#include "base/os/fork_guard.h"
#include "base/os/posix/descriptors.h"

namespace tandem {

LauncherWatch::LauncherWatch(int pipe_fd, std::function<void()> on_left,
                             std::function<void()> on_stuck)
    : born_in_(ForkCount()),
      pipe_(pipe_fd),
      stop_(OpenEvent()),
      on_left_(std::move(on_left)),
      on_stuck_(std::move(on_stuck)) {
  if (!stop_.valid()) {
    std::fputs(
        "tandem: expected a file descriptor to watch the launcher with, found "
        "none free; raise `ulimit -n`\n",
        stderr);
    std::abort();
  }
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Watch(); });
}

LauncherWatch::~LauncherWatch() {
  if (born_in_ != ForkCount()) {
    thread_.detach();
    return;
  }
  SetEvent(stop_.get());
  thread_.join();
}

bool LauncherWatch::HasLeft() const {
  // relaxed: a flag for people.
  return left_.load(std::memory_order_relaxed);
}

void LauncherWatch::Watch() {
  for (;;) {
    std::array<pollfd, 2> fds = {{
        {.fd = pipe_.get(), .events = POLLIN, .revents = 0},
        {.fd = stop_.get(), .events = POLLIN, .revents = 0},
    }};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) continue;
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    std::array<char, 256> bytes;
    const ssize_t count = read(pipe_.get(), bytes.data(), bytes.size());
    if (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN))) {
      continue;
    }
    // relaxed: a flag for people.
    left_.store(true, std::memory_order_relaxed);
    on_left_();
    // This thread blocks all signals, so no signal shortens the wait.
    if (poll(&fds[1], 1, kGraceMs) == 0) on_stuck_();
    return;
  }
}

}  // namespace tandem

#include "base/os/launcher_watch.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/os/fork_guard.h"
#include "base/os/windows/native.h"

namespace tandem {
namespace {

// Windows has no wait for the end of a pipe that a read elsewhere could share.
constexpr DWORD kLookMs = 50;

// Discards what is in the pipe; returns false once no process can write.
bool IsOpen(HANDLE pipe) {
  DWORD bytes = 0;
  if (!PeekNamedPipe(pipe, nullptr, 0, nullptr, &bytes, nullptr)) return false;
  char discarded[256];
  if (bytes > 0) ReadFile(pipe, discarded, sizeof(discarded), &bytes, nullptr);
  return true;
}

}  // namespace

LauncherWatch::LauncherWatch(int pipe_fd, std::function<void()> on_left,
                             std::function<void()> on_stuck)
    : born_in_(ForkCount()),
      pipe_(pipe_fd),
      stop_(Owned(CreateEventW(nullptr, TRUE, FALSE, nullptr))),
      on_left_(std::move(on_left)),
      on_stuck_(std::move(on_stuck)) {
  if (!stop_.valid()) {
    std::fputs(
        "tandem: expected an event to watch the launcher with, found no "
        "memory for one; end other programs\n",
        stderr);
    std::abort();
  }
  thread_ = std::thread([this] { Watch(); });
}

LauncherWatch::~LauncherWatch() {
  SetEvent(HandleOf(stop_.get()));
  thread_.join();
}

bool LauncherWatch::HasLeft() const {
  // relaxed: a flag for people.
  return left_.load(std::memory_order_relaxed);
}

void LauncherWatch::Watch() {
  const HANDLE stop = HandleOf(stop_.get());
  while (IsOpen(HandleOf(pipe_.get()))) {
    if (WaitForSingleObject(stop, kLookMs) == WAIT_OBJECT_0) return;
  }
  // relaxed: a flag for people.
  left_.store(true, std::memory_order_relaxed);
  on_left_();
  if (WaitForSingleObject(stop, kGraceMs) == WAIT_TIMEOUT) on_stuck_();
}

}  // namespace tandem

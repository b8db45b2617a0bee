// OutputPace: the times at which a proxy reads its worker's output: each 20 ms
// while it grows, and else when inotify reports a write.
//
// Data flow: results of reads, writes of the worker -> the time of the next
// read.
// Ownership: the proxy owns it; one thread uses it.

#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {

class OutputPace {
 public:
  static constexpr int kShortestMs = 20;
  static constexpr int kRetryMs = 1'000;  // after an error
  // Longest pauses of idle output. Without inotify (the user has no instance
  // left, or the file system has none) the proxy polls.
  static constexpr int kLongestMs = 1'000;
  static constexpr int kLongestBlindMs = 160;

  // Begins to watch the file, which exists; a second call has no effect.
  void Watch(const std::string& path) {
    if (writes_.valid()) return;
    writes_ = UniqueFd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (inotify_add_watch(writes_.get(), path.c_str(), IN_MODIFY) < 0) {
      writes_.reset();
    }
  }

  bool IsDue() const { return MonotonicNanos() >= next_ns_; }
  // 0: at once.
  int64_t next_ns() const { return next_ns_; }
  int pause_ms() const { return pause_ms_; }
  void ReadAtOnce() { next_ns_ = 0; }

  // The results of a read. `grew`: it found complete lines; `more`: it did not
  // reach the end of the output, since too much waits for the daemon.
  void NoteRead(bool grew, bool more) {
    const int longest_ms = writes_.valid() ? kLongestMs : kLongestBlindMs;
    pause_ms_ = grew ? kShortestMs : std::min(pause_ms_ * 2, longest_ms);
    SetNext(more ? 0 : pause_ms_);
    is_idle_ = !grew && !more;
  }
  void NoteError() {
    SetNext(kRetryMs);
    is_idle_ = false;
  }

  // Readable after a write; -1 unless the last read was at the output's end and
  // found nothing: else the pause collects small writes.
  int wake_fd() const { return is_idle_ ? writes_.get() : -1; }
  // Call it when wake_fd is readable. The next read sees all writes so far.
  void Wake() {
    std::array<char, 4096> events;
    while (read(writes_.get(), events.data(), events.size()) > 0) {
    }
    ReadAtOnce();
  }

 private:
  void SetNext(int pause_ms) {
    constexpr int64_t kNsPerMs = 1'000'000;
    next_ns_ = pause_ms == 0 ? 0 : MonotonicNanos() + pause_ms * kNsPerMs;
  }

  UniqueFd writes_;
  int pause_ms_ = kShortestMs;
  int64_t next_ns_ = 0;
  bool is_idle_ = false;
};

}  // namespace tandem::slow_lane

// The transport's time: CLOCK_MONOTONIC nanoseconds and deadlines.
//
// Data flow: a caller's seconds become one absolute Deadline. All waits of a
// call share it, so repeated waits do not add up.
//
//   Deadline deadline = Deadline::After(2.5);
//   while (!Ready()) if (deadline.PassedAt(MonotonicNanos())) return Timeout();

#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace tandem {

// CLOCK_MONOTONIC. All processes of a machine share it, except those in another
// time namespace. No system call if the vDSO serves it.
inline int64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Milliseconds since 1970, comparable between machines. No system call if the
// vDSO serves it.
inline uint64_t UnixMillis() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 +
         static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

// The point in time at which a wait ends. A value type.
class Deadline {
 public:
  static constexpr Deadline Infinite() {
    return Deadline(std::numeric_limits<int64_t>::max());
  }
  // Has always passed: a wait with it polls once.
  static constexpr Deadline Now() { return Deadline(0); }
  // The point at which CLOCK_MONOTONIC is `at_ns`.
  static constexpr Deadline At(int64_t at_ns) { return Deadline(at_ns); }
  // `timeout_secs` from now. A negative number counts as zero; NaN, or more
  // than a century, as never.
  static Deadline After(double timeout_secs) {
    return After(timeout_secs, MonotonicNanos());
  }
  // The same, counted from `from_ns`.
  static Deadline After(double timeout_secs, int64_t from_ns) {
    if (timeout_secs <= 0) return Now();
    if (!(timeout_secs < 3.2e9)) return Infinite();
    return Deadline(from_ns + static_cast<int64_t>(timeout_secs * 1e9));
  }

  constexpr bool PassedAt(int64_t now_ns) const { return now_ns >= at_ns_; }
  constexpr int64_t at_ns() const { return at_ns_; }
  friend constexpr bool operator==(Deadline a, Deadline b) = default;

 private:
  explicit constexpr Deadline(int64_t at_ns) : at_ns_(at_ns) {}
  int64_t at_ns_;
};

}  // namespace tandem

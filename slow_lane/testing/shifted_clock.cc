// For LD_PRELOAD: a wall clock that a test can set while a program runs. It
// affects that program and the programs it starts.
//
// Data flow: the file named by TANDEM_TEST_CLOCK holds eight bytes: the seconds
// to add. They apply to all reads of CLOCK_REALTIME and all waits by it. A wait
// in progress follows a change, as with the kernel's clock. Other clocks are
// unchanged.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
// A waiting thread detects a change within this time.
constexpr int64_t kSliceNs = 50'000'000;

template <typename Function>
Function* Next(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int64_t ShiftNs() {
  static const volatile int64_t* const seconds = [] {
    const char* const path = getenv("TANDEM_TEST_CLOCK");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) abort();
    void* const shared =
        mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED) abort();
    return static_cast<const volatile int64_t*>(shared);
  }();
  return *seconds * kNsPerSecond;
}

int RealGet(clockid_t clock, timespec* now) {
  static auto* const real = Next(&clock_gettime, "clock_gettime");
  return real(clock, now);
}

int64_t RealNs() {
  timespec now = {};
  RealGet(CLOCK_REALTIME, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

timespec ToTimespec(int64_t ns) {
  return {.tv_sec = ns / kNsPerSecond, .tv_nsec = ns % kNsPerSecond};
}

// Returns the real time at which a wait until `shifted` must check again;
// false if that time is past.
bool NextSlice(const timespec& shifted, timespec* until) {
  const int64_t target = shifted.tv_sec * kNsPerSecond + shifted.tv_nsec;
  const int64_t now = RealNs();
  const int64_t left = target - (now + ShiftNs());
  *until = ToTimespec(now + std::clamp<int64_t>(left, 0, kSliceNs));
  return left > 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = RealGet(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    now->tv_sec += ShiftNs() / kNsPerSecond;
  }
  return result;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  const int64_t ns = RealNs() + ShiftNs();
  now->tv_sec = ns / kNsPerSecond;
  now->tv_usec = ns % kNsPerSecond / 1000;
  return 0;
}

time_t time(time_t* now) noexcept {
  const time_t seconds = (RealNs() + ShiftNs()) / kNsPerSecond;
  if (now != nullptr) *now = seconds;
  return seconds;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* end) {
  static auto* const real =
      Next(&pthread_cond_clockwait, "pthread_cond_clockwait");
  if (clock != CLOCK_REALTIME) return real(condition, mutex, clock, end);
  timespec until = {};
  while (NextSlice(*end, &until)) {
    const int result = real(condition, mutex, clock, &until);
    if (result != ETIMEDOUT) return result;
  }
  return ETIMEDOUT;
}

// Abseil calls futex directly. A call has six arguments at most.
long syscall(long number, ...) noexcept {
  __builtin_va_list list;
  __builtin_va_start(list, number);
  long words[6];
  for (long& word : words) word = __builtin_va_arg(list, long);
  __builtin_va_end(list);
  static auto* const real = Next(&syscall, "syscall");
  const auto call = [&](long time) {
    return real(number, words[0], words[1], words[2], time, words[4], words[5]);
  };
  const auto* const end = reinterpret_cast<const timespec*>(words[3]);
  if (number != SYS_futex || (words[1] & FUTEX_CLOCK_REALTIME) == 0 ||
      end == nullptr) {
    return call(words[3]);
  }
  timespec until = {};
  while (NextSlice(*end, &until)) {
    const long result = call(reinterpret_cast<long>(&until));
    if (result != -1 || errno != ETIMEDOUT) return result;
  }
  errno = ETIMEDOUT;
  return -1;
}

}  // extern "C"

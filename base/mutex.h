// Mutex, MutexLock, CondVar: std::mutex and std::condition_variable with
// clang's annotations. Data that a Mutex guards says so by ABSL_GUARDED_BY.
//
// Data flow: a change under the lock and a Signal -> the thread in Wait.
// Ownership: the caller's.
//
//   MutexLock lock(&mutex_);
//   while (!done_) changed_.Wait(&mutex_);
//
// Reasons: ThreadSanitizer knows the locks of pthreads, but not those of
// Abseil's library as Debian compiles it. std::condition_variable::wait is a
// symbol of GCC 12's library: programs that use it do not load on systems with
// GCC 11, such as RHEL 9; wait_for uses only the C library.

#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"

namespace tandem {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;  // constexpr if std::mutex's is, as on Linux and macOS
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  [[nodiscard]] bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex->Lock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }

 private:
  Mutex* const mutex_;
};

// A wait may end without a Signal.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    WaitUntil(mutex, Deadline::Infinite());
  }
  void WaitUntil(Mutex* mutex, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const std::chrono::nanoseconds left(deadline.at_ns() - MonotonicNanos());
    changed_.wait_for(lock,
                      std::min<std::chrono::nanoseconds>(left, kMostWait));
    lock.release();
  }
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  // A longer one would overflow in wait_for; Wait may return early.
  static constexpr std::chrono::hours kMostWait{1};
  std::condition_variable changed_;
};

}  // namespace tandem

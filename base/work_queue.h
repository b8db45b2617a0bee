// WorkQueue: threads that call functions in the order of their arrival.
//
// Data flow: any thread -> Add -> a thread of the queue calls the function.
// Ownership: destruction waits until the added functions have been called, or
// drops those that wait.
//
//   WorkQueue queue(8, 256);
//   if (!queue.Add([] { Work(); })) return Overloaded();

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace tandem {

// Thread-safe.
class WorkQueue {
 public:
  enum class AtEnd : bool { kCallWaiting, kDropWaiting };

  // `most_threads` are started as they are needed. Add refuses more than
  // most_threads + most_waiting functions, called and waiting together.
  WorkQueue(size_t most_threads, size_t most_waiting,
            AtEnd at_end = AtEnd::kCallWaiting)
      : most_threads_(most_threads),
        most_(most_threads + most_waiting),
        at_end_(at_end) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() {
    {
      std::deque<std::function<void()>> dropped;  // destroyed without the lock
      MutexLock lock(&mutex_);
      ending_ = true;
      if (at_end_ == AtEnd::kDropWaiting) dropped.swap(waiting_);
    }
    added_.SignalAll();
    for (std::thread& thread : threads_) thread.join();
  }

  // Does not block. False: `work` was not added: too many functions wait, or
  // the end drops it.
  [[nodiscard]] bool Add(std::function<void()> work) {
    MutexLock lock(&mutex_);
    if (IsDropping() || running_ + waiting_.size() >= most_) return false;
    waiting_.push_back(std::move(work));
    WakeOne();
    return true;
  }

  // Adds it before all waiting functions, in spite of the maximum: for the rest
  // of a work that has begun. Does not block.
  void AddFirst(std::function<void()> work) {
    MutexLock lock(&mutex_);
    if (IsDropping()) return;
    waiting_.push_front(std::move(work));
    WakeOne();
  }

  size_t most_threads() const { return most_threads_; }

  // Whether no function waits or is called. Another thread may add one at once.
  bool IsIdle() const {
    MutexLock lock(&mutex_);
    return running_ + waiting_.size() == 0;
  }

 private:
  bool IsDropping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ && at_end_ == AtEnd::kDropWaiting;
  }

  void WakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ending_ && running_ + waiting_.size() > threads_.size() &&
        threads_.size() < most_threads_) {
      threads_.emplace_back([this] { Run(); });
    }
    added_.Signal();
  }

  void Run() {
    mutex_.Lock();
    for (;;) {
      while (!ending_ && waiting_.empty()) added_.Wait(&mutex_);
      if (waiting_.empty()) break;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      ++running_;
      mutex_.Unlock();
      work();
      work = nullptr;
      mutex_.Lock();
      --running_;
    }
    mutex_.Unlock();
  }

  const size_t most_threads_;
  const size_t most_;
  const AtEnd at_end_;
  mutable Mutex mutex_;
  CondVar added_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Guarded by mutex_ until the destructor, which comes after the last Add.
  std::vector<std::thread> threads_;
};

}  // namespace tandem

// WorkQueue: threads that call functions in the order of their arrival.
//
// Data flow: any thread -> Add -> a thread of the queue calls the function.
// Ownership: destruction waits until the added functions have been called.
//
//   WorkQueue queue(8, 256);
//   if (!queue.Add([] { Work(); })) return Overloaded();

#ifndef TANDEM_GATEWAY_WORK_QUEUE_H_
#define TANDEM_GATEWAY_WORK_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/await.h"

namespace tandem::gateway {

// Thread-safe.
class WorkQueue {
 public:
  // `most_threads` are started as they are needed. `most_waiting`: the maximum
  // of functions that wait beside as many that are called.
  WorkQueue(size_t most_threads, size_t most_waiting)
      : most_threads_(most_threads), most_(most_threads + most_waiting) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    added_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Does not block. False: too many functions wait; `work` was not added.
  [[nodiscard]] bool Add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (running_ + waiting_.size() >= most_) return false;
    waiting_.push_back(std::move(work));
    WakeOne();
    return true;
  }

  // Adds it before all waiting functions, in spite of the maximum: for the rest
  // of a work that has begun. Does not block.
  void AddFirst(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_front(std::move(work));
    WakeOne();
  }

  size_t most_threads() const { return most_threads_; }

  // Whether no function waits or is called. Another thread may add one at once.
  bool IsIdle() const {
    const std::lock_guard lock(mutex_);
    return running_ + waiting_.size() == 0;
  }

 private:
  // Caller holds mutex_.
  void WakeOne() {
    if (running_ + waiting_.size() > threads_.size() &&
        threads_.size() < most_threads_) {
      threads_.emplace_back([this] { Run(); });
    }
    added_.notify_one();
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Await(added_, lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      ++running_;
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
      --running_;
    }
  }

  const size_t most_threads_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  // Guarded by mutex_; the destructor reads threads_ after the last Add.
  std::deque<std::function<void()>> waiting_;
  size_t running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::gateway

#endif  // TANDEM_GATEWAY_WORK_QUEUE_H_

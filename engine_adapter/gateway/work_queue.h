// WorkQueue: threads that call functions in the order of their arrival.
//
// Data flow: any thread -> Add -> a thread of the queue calls the function.
// Ownership: destruction waits until the added functions have been called.
//
//   WorkQueue queue(8, 256);
//   if (!queue.Add([] { Work(); })) return Overloaded();

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_WORK_QUEUE_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_WORK_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::gateway {

// Thread-safe.
class WorkQueue {
 public:
  // `most_waiting`: the maximum of functions that no thread has taken.
  WorkQueue(size_t threads, size_t most_waiting) : most_(most_waiting) {
    for (size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { Run(); });
    }
  }
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
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= most_) return false;
      waiting_.push_back(std::move(work));
    }
    added_.notify_one();
    return true;
  }

  // Adds it before all waiting functions, in spite of the maximum: for the rest
  // of a work that has begun. Does not block.
  void AddFirst(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_front(std::move(work));
    }
    added_.notify_one();
  }

  // Whether no function waits. Another thread may add one at once.
  bool IsEmpty() const {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_WORK_QUEUE_H_

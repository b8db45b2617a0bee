// WorkThread: runs calls that block, one after another, on a thread of its own.
//
// Data flow: the server's thread -> a queue -> the thread -> results in objects
// that both share.
// Ownership: the destructor drops waiting work, and blocks until the current
// work ends.
//
//   WorkThread thread;
//   if (!thread.Post([result] { result->Set(Call()); })) RefuseAsBusy();

#ifndef TANDEM_VIZ_CORE_WORK_THREAD_H_
#define TANDEM_VIZ_CORE_WORK_THREAD_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tandem {

class WorkThread {
 public:
  static constexpr size_t kMostWaiting = 64;

  WorkThread() : thread_([this] { Run(); }) {}
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;
  ~WorkThread() {
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
      queue_.clear();
    }
    thread_.join();
  }

  // Returns false if kMostWaiting calls wait already. Does not wait. Any
  // thread.
  bool Post(std::function<void()> work) {
    absl::MutexLock lock(&mutex_);
    if (queue_.size() >= kMostWaiting) return false;
    queue_.push_back(std::move(work));
    return true;
  }

 private:
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || !queue_.empty();
  }
  void Run() {
    for (;;) {
      std::function<void()> work;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &WorkThread::HasWork));
        if (ending_) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_WORK_THREAD_H_

// MainThreadQueue: work that other threads pass to the stepping thread.
//
// Data flow: any thread -> Post -> the stepping thread, between exchanges ->
// Pump.
// Ownership: the host and the posting threads share it; a posting thread may
// outlive the host.

#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace tandem {

class MainThreadQueue {
 public:
  // `wake` wakes the stepping thread; the posting thread calls it.
  explicit MainThreadQueue(std::function<void()> wake)
      : wake_(std::move(wake)) {}
  MainThreadQueue(const MainThreadQueue&) = delete;
  MainThreadQueue& operator=(const MainThreadQueue&) = delete;

  // Adds `work`. Any thread may call it; it does not wait for the work. After
  // Close the work is dropped. `work` must not throw: no caller could catch it.
  void Post(std::function<void()> work);

  // The stepping thread calls this. Executes the work posted before this call,
  // in order. Allocates nothing if there is none.
  void Pump();

  // Whether Post was called after the last Pump. For the stepping thread, which
  // may see a call from another thread late.
  bool HasWork() const {
    // relaxed: only the flag's value is used; Pump locks the mutex.
    return has_work_.load(std::memory_order_relaxed);
  }

  // The host calls this after the stepping thread has ended. Drops all work; no
  // later call executes work or calls `wake`.
  void Close();

 private:
  Mutex mutex_;
  std::vector<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);  // empty: closed
  // Writers: with mutex_; reader: the stepping thread.
  std::atomic<bool> has_work_{false};
};

}  // namespace tandem

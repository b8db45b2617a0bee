#include "engine_adapter/rpc/main_thread_queue.h"

namespace tandem {

void MainThreadQueue::Post(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (wake_ == nullptr) return;
  work_.push_back(std::move(work));
  // relaxed: as in HasWork.
  has_work_.store(true, std::memory_order_relaxed);
  wake_();
}

void MainThreadQueue::Pump() {
  std::vector<std::function<void()>> work;
  {
    MutexLock lock(&mutex_);
    work.swap(work_);
    // relaxed: as in HasWork.
    has_work_.store(false, std::memory_order_relaxed);
  }
  for (const std::function<void()>& each : work) each();
}

void MainThreadQueue::Close() {
  std::vector<std::function<void()>> dropped;  // destroyed outside of the lock
  MutexLock lock(&mutex_);
  wake_ = nullptr;
  // relaxed: as in HasWork.
  has_work_.store(false, std::memory_order_relaxed);
  dropped.swap(work_);
}

}  // namespace tandem

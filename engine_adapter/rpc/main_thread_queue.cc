#include "engine_adapter/rpc/main_thread_queue.h"

namespace tandem {

void MainThreadQueue::Post(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wake_ == nullptr) return;
  work_.push_back(std::move(work));
  wake_();
}

void MainThreadQueue::Pump() {
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work.swap(work_);
  }
  for (const std::function<void()>& each : work) each();
}

void MainThreadQueue::Close() {
  std::vector<std::function<void()>> dropped;  // destroyed outside of the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_ = nullptr;
  dropped.swap(work_);
}

}  // namespace tandem

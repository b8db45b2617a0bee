// MainThreadQueue: work that other threads leave for the one that steps.
//
// Data flow: any thread -> Post -> the thread that steps, between exchanges ->
// Pump.
// Ownership: shared by the host, which pumps, and the posters: those may live
// longer.
//
//   queue->Post([job, image] { job->image = image; });  // any thread
//   queue->Pump();  // the thread that steps

#ifndef TANDEM_ENGINE_ADAPTER_RPC_MAIN_THREAD_QUEUE_H_
#define TANDEM_ENGINE_ADAPTER_RPC_MAIN_THREAD_QUEUE_H_

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem {

class MainThreadQueue {
 public:
  // `wake` wakes the thread that steps; the posting thread calls it.
  explicit MainThreadQueue(std::function<void()> wake)
      : wake_(std::move(wake)) {}
  MainThreadQueue(const MainThreadQueue&) = delete;
  MainThreadQueue& operator=(const MainThreadQueue&) = delete;

  // Thread-safe; doesn't wait. After Close the work is dropped. `work` must not
  // throw: no caller could catch it.
  void Post(std::function<void()> work);

  // The thread that steps: does what was posted before this call, in order.
  // Allocates nothing where nothing was.
  void Pump();

  // The thread that steps has ended: nothing is done any more, what waits is
  // dropped, and `wake` is not called again.
  void Close();

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::function<void()>> work_;
  std::function<void()> wake_;  // empty: closed
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_RPC_MAIN_THREAD_QUEUE_H_

// Await: waits on a condition variable until a condition is true.
//
// Data flow: a change under the lock and a notify -> the thread in Await.
// Ownership: the caller's mutex and condition variable.
//
//   std::unique_lock<std::mutex> lock(mutex);
//   Await(changed, lock, [&] { return done; });
//
// Reason: std::condition_variable::wait is a symbol of GCC 12's library.
// Programs that use it do not load on systems with GCC 11, such as RHEL 9.
// wait_for uses only the C library.

#ifndef TANDEM_BASE_AWAIT_H_
#define TANDEM_BASE_AWAIT_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tandem {

// Blocks until `ready()`, which is called under the lock.
template <typename Ready>
void Await(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
           Ready ready) {
  while (!ready()) changed.wait_for(lock, std::chrono::hours(1));
}

}  // namespace tandem

#endif  // TANDEM_BASE_AWAIT_H_

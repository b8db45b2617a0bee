// Await: waits on a condition variable until something holds.
//
// Data flow: a change under the lock and a notify -> the thread in Await.
// Ownership: the caller's mutex and condition variable.
//
//   std::unique_lock<std::mutex> lock(mutex);
//   Await(changed, lock, [&] { return done; });
//
// std::condition_variable::wait itself is a symbol of GCC 12's library: with
// it, what is built here would not load on systems of GCC 11, such as RHEL 9.
// A wait with a limit is made of the C library's.

#ifndef TANDEM_TRANSPORT_BASE_AWAIT_H_
#define TANDEM_TRANSPORT_BASE_AWAIT_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tandem {

// Blocks until `ready()`, which is asked under the lock.
template <typename Ready>
void Await(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
           Ready ready) {
  while (!ready()) changed.wait_for(lock, std::chrono::hours(1));
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_AWAIT_H_

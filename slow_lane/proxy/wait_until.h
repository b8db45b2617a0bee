// WaitUntil: a pause of a std::jthread, which a requested stop ends.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace tandem::slow_lane {

// Blocks until then; returns false at once if a stop is requested.
inline bool WaitUntil(std::chrono::steady_clock::time_point then,
                      const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_until(lock, stop, then, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace tandem::slow_lane

// Stopping: whether the process has begun to end.
//
// Data flow: main's signal -> BeginStopping -> waits in all threads end with
// kInterrupted, by IsStopping as their InterruptHook.

#pragma once

#include "absl/synchronization/notification.h"

namespace tandem::gateway {

inline absl::Notification& StopNotification() {
  static absl::Notification notification;
  return notification;
}

// Call it once. Thread-safe.
inline void BeginStopping() { StopNotification().Notify(); }

// Any thread, at any time.
inline bool IsStopping() { return StopNotification().HasBeenNotified(); }

}  // namespace tandem::gateway

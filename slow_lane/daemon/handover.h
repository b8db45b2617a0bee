// What a thread hands to another one through gRPC, told to ThreadSanitizer:
// gRPC orders it, but is the system's, compiled without it.
//
// Data flow: a reactor's members, written by its constructor or in OnCancel ->
// HandOver -> gRPC -> TakeOver, in its functions or in OnDone -> read. What a
// lock guards needs none of it. Without ThreadSanitizer both do nothing.
//
//   explicit Adapter(...) : ... { HandOver(this); }
//   void OnReadDone(bool ok) override { TakeOver(this); ... }

#ifndef TANDEM_SLOW_LANE_DAEMON_HANDOVER_H_
#define TANDEM_SLOW_LANE_DAEMON_HANDOVER_H_

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TANDEM_HANDOVER_IS_TOLD
#endif
#endif

namespace tandem::slow_lane {

inline void HandOver([[maybe_unused]] void* object) {
#ifdef TANDEM_HANDOVER_IS_TOLD
  __tsan_release(object);
#endif
}

inline void TakeOver([[maybe_unused]] void* object) {
#ifdef TANDEM_HANDOVER_IS_TOLD
  __tsan_acquire(object);
#endif
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_HANDOVER_H_

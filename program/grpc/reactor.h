// Common functions of gRPC reactors: ToGrpc, HandOver and
// TakeOver.
//
// HandOver and TakeOver show ThreadSanitizer an order of two threads that gRPC
// guarantees. gRPC itself is compiled without ThreadSanitizer.
//
// Data flow: a reactor's members, written by its constructor or in OnCancel ->
// HandOver -> gRPC -> TakeOver, in its functions or in OnDone -> read. Members
// that a lock guards do not need it. Without ThreadSanitizer both do nothing.
//
//   explicit Adapter(...) : ... { HandOver(this); }
//   void OnReadDone(bool ok) override { TakeOver(this); ... }

#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TANDEM_SHOWS_HANDOVER
#endif
#endif

namespace tandem {

inline void HandOver([[maybe_unused]] void* object) {
#ifdef TANDEM_SHOWS_HANDOVER
  __tsan_release(object);
#endif
}

inline void TakeOver([[maybe_unused]] void* object) {
#ifdef TANDEM_SHOWS_HANDOVER
  __tsan_acquire(object);
#endif
}

// Converts an absl::Status to gRPC's. Their codes are equal by design.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace tandem

// The table of error codes, for C++ and Python.
//
// Data flow: a call of the step path returns ErrorCode; a set-up call returns
// an absl::Status with the code (base/error.h); the Python binding
// raises the class in the row. A released number keeps its meaning; new rows
// are appended.
//
//   #define ROW(number, name, absl_code, python_class, meaning) ...
//   TANDEM_ERROR_TABLE(ROW)

#pragma once

#include <cstdint>

// number, C++ name, absl::StatusCode, Python class, meaning
#define TANDEM_ERROR_TABLE(ROW)                                            \
  ROW(0, kOk, kOk, None, "success")                                        \
  ROW(1, kNotReady, kUnavailable, NotReady,                                \
      "no engine serves a region of that name yet")                        \
  ROW(2, kPeerGone, kAborted, PeerGone, "the other side has left or died") \
  ROW(3, kStepTimeout, kDeadlineExceeded, StepTimeout,                     \
      "the other side did not answer before the deadline")                 \
  ROW(4, kLayoutMismatch, kFailedPrecondition, LayoutMismatch,             \
      "the region is not laid out as this side understands it")            \
  ROW(5, kAlreadyAttached, kAlreadyExists, AlreadyAttached,                \
      "another engine or client holds this place")                         \
  ROW(6, kStepPending, kFailedPrecondition, StepPending,                   \
      "an exchange was sent whose results were not yet received")          \
  ROW(7, kNoStepPending, kFailedPrecondition, NoStepPending,               \
      "there is nothing to receive: no exchange was sent")                 \
  ROW(8, kConcurrentUse, kFailedPrecondition, ConcurrentUse,               \
      "another thread is inside a call on the same client")                \
  ROW(9, kForkedChild, kFailedPrecondition, ForkedChild,                   \
      "the object belongs to the parent of this forked process")           \
  ROW(10, kClientClosed, kFailedPrecondition, ClientClosed,                \
      "the object was closed, or lost its session")                        \
  ROW(11, kInvalidAction, kInvalidArgument, InvalidAction,                 \
      "actions of a wrong shape or dtype, not contiguous or not finite")   \
  ROW(12, kInvalidArgument, kInvalidArgument, InvalidArgument,             \
      "invalid name, size, option or index")                               \
  ROW(13, kBrokenPeer, kDataLoss, BrokenPeer,                              \
      "the other side broke the protocol")                                 \
  ROW(14, kEngineFailed, kInternal, EngineFailed,                          \
      "the engine reported a failure of its own")                          \
  ROW(15, kEngineStartFailed, kFailedPrecondition, EngineStartFailed,      \
      "an engine process ended before it served its region")               \
  ROW(16, kAccessDenied, kPermissionDenied, AccessDenied,                  \
      "the region belongs to another user")                                \
  ROW(17, kOutOfSharedMemory, kResourceExhausted, OutOfSharedMemory,       \
      "/dev/shm has no room for the region")                               \
  ROW(18, kInterrupted, kCancelled, Interrupted,                           \
      "the wait was interrupted; the exchange is still pending")           \
  ROW(19, kRingFull, kResourceExhausted, RingFull,                         \
      "the RPC ring has no room for the message now")                      \
  ROW(20, kRingEmpty, kUnavailable, RingEmpty,                             \
      "the RPC ring holds no message now")                                 \
  ROW(21, kMessageTooLarge, kInvalidArgument, MessageTooLarge,             \
      "the message is larger than the RPC rings carry")                    \
  ROW(22, kUnsupported, kUnimplemented, Unsupported,                       \
      "this version cannot do that")                                       \
  ROW(23, kSystemCallFailed, kInternal, SystemCallFailed,                  \
      "a system call failed")                                              \
  ROW(24, kEnvFailed, kInternal, EnvFailed,                                \
      "an environment raised an exception in its worker process")          \
  ROW(25, kGpuFailed, kInternal, GpuFailed,                                \
      "a call of the GPU driver failed or was refused")                    \
  ROW(26, kGpuDriverMissing, kFailedPrecondition, GpuDriverMissing,        \
      "there is no GPU driver, or no GPU")                                 \
  ROW(27, kGpuDriverTooOld, kFailedPrecondition, GpuDriverTooOld,          \
      "the GPU driver is older than this version needs")                   \
  ROW(28, kGpuOtherDevice, kFailedPrecondition, GpuOtherDevice,            \
      "the arrays are on a GPU that this process does not see")            \
  ROW(29, kGpuStaleHandle, kAborted, GpuStaleHandle,                       \
      "the engine's GPU memory is gone")                                   \
  ROW(30, kGpuOtherContext, kFailedPrecondition, GpuOtherContext,          \
      "another context than the device's primary one is current")

namespace tandem {

enum class [[nodiscard]] ErrorCode : uint32_t{
#define TANDEM_ROW(number, name, absl_code, python_class, meaning) \
  name = number,
    TANDEM_ERROR_TABLE(TANDEM_ROW)
#undef TANDEM_ROW
};

}  // namespace tandem

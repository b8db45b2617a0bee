// NativeRpc: RPCs to an engine, and its streams, for Python.
//
// Data flow: dict -> PackRequest -> RpcClient -> engine -> RpcClient ->
// PayloadValues -> dict.
// Ownership: a NativeClient or a NativeAttendant has one, beside its side, and
// outlives it and its streams. All calls need the GIL; calls that wait release
// it. Any number of Python threads may call it, also during a step of another
// thread.

#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/os/fork_guard.h"
#include "client_py/bindings/waiting.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attendant_side.h"
#include "transport/rpc_client.h"
#include "transport/rpc_side.h"

namespace tandem {

// Raises by the error table; engine errors have the engine's text. After a
// reconnect or close, Next returns the received items, then raises
// ClientClosed.
class NativeStream {
 public:
  NativeStream(std::shared_ptr<RpcClient> client, uint64_t id,
               rpc::MethodId method, std::string region);
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;
  ~NativeStream() { Close(); }

  // Returns the next item's fields. None: the stream has ended or was closed.
  pybind11::object Next(double timeout_secs);
  // The number of Next's last item, from 1. Dropped items count. 0: none yet.
  uint64_t number() const { return number_; }
  // The number of items that were dropped because the caller was too slow.
  uint64_t dropped() const;
  // Ends the stream at the engine. Does not wait and raises nothing. A second
  // call, and a call in a forked child, has no effect.
  void Close();

 private:
  const std::shared_ptr<RpcClient> client_;
  const uint64_t id_;
  const rpc::MethodId method_;
  const std::string region_;
  const uint32_t born_in_;  // ForkCount() of the owner
  uint64_t number_ = 0;
  uint64_t dropped_at_close_ = 0;
  bool closed_ = false;
};

// States: with a session; without one, after EndSession.
class NativeRpc {
 public:
  NativeRpc(RpcSide* side, double timeout_secs)
      : side_(side),
        session_(side, {.interrupted = PythonInterrupts}),
        timeout_secs_(timeout_secs) {}
  NativeRpc(const NativeRpc&) = delete;
  NativeRpc& operator=(const NativeRpc&) = delete;

  // Returns the answer's fields. Raises by the error table; engine errors have
  // the engine's text. InvalidArgument: invalid request. An answer that comes
  // after StepTimeout is dropped.
  pybind11::dict Call(uint16_t method, pybind11::handle request,
                      std::optional<double> timeout_secs);
  // Does not wait. The first item's Next raises engine errors.
  std::unique_ptr<NativeStream> Open(uint16_t method, pybind11::handle request);

  // The default timeout.
  void SetTimeout(double timeout_secs) { timeout_secs_ = timeout_secs; }
  double timeout_secs() const { return timeout_secs_; }

  // Call it before the session ends. Calls of other threads get ClientClosed;
  // waits without the GIL until they have returned.
  void EndSession();
  // Call it after a successful Reconnect.
  void BeginSession() { session_.Begin(); }

 private:
  std::shared_ptr<RpcClient> Client();

  RpcSide* const side_;
  RpcSession session_;
  double timeout_secs_;
};

// The Python interface of AttendantSide: the Python object tandem.Attendant
// holds one. All calls need the GIL; calls that wait release it. Any thread may
// call it.
//
// States: attached, closed.
class NativeAttendant {
 public:
  // Takes a slot; blocks for up to `timeout_secs`. Raises the errors of
  // AttendantSide::Attach.
  NativeAttendant(const std::string& name, const std::string& label,
                  double timeout_secs);
  NativeAttendant(const NativeAttendant&) = delete;
  NativeAttendant& operator=(const NativeAttendant&) = delete;

  NativeRpc& rpc() { return rpc_; }
  void SetTimeout(double timeout_secs) { rpc_.SetTimeout(timeout_secs); }
  uint32_t num_envs() const { return side_->plan().num_envs; }
  // The pid that the engine has written, for display only.
  uint32_t engine_pid() const {
    // relaxed: a private copy.
    return side_->plan().server_pid.load(std::memory_order_relaxed);
  }
  bool closed() const { return closed_; }

  // Leaves the slot. Calls of other threads get ClientClosed. A second call,
  // and a call in a forked child, has no effect.
  void Close();

 private:
  const std::unique_ptr<AttendantSide> side_;
  NativeRpc rpc_;
  bool closed_ = false;
};

}  // namespace tandem

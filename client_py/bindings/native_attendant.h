// NativeAttendant: the Python interface of AttendantSide.
//
// Data flow: dict -> NativeRpc -> the slot's rings -> engine.
// Ownership: the Python object tandem.Attendant holds one. All calls need the
// GIL; calls that wait release it. Any thread may call it.
//
//   NativeAttendant attendant("demo", "panel", 10.0);
//   py::dict answer = attendant.rpc().Call(49, request, std::nullopt);

#ifndef TANDEM_CLIENT_PY_BINDINGS_NATIVE_ATTENDANT_H_
#define TANDEM_CLIENT_PY_BINDINGS_NATIVE_ATTENDANT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_py/bindings/native_rpc.h"
#include "transport/session/attendant_side.h"

namespace tandem {

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

#endif  // TANDEM_CLIENT_PY_BINDINGS_NATIVE_ATTENDANT_H_

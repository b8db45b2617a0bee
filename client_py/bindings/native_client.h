// NativeClient: a ClientSide as Python sees it.
//
// Data flow: NumPy array -> checked, not converted -> ClientSide::Send;
// ClientSide::Recv -> the same three NumPy views every time.
// Ownership: the Python object tandem.SharedMemoryClient holds one. The views
// share the mapping, so that they outlive the client. All calls need the GIL;
// those that wait release it.
//
//   NativeClient client("demo", 10.0, "adaptive", AutoresetMode::kSameStep);
//   py::tuple obs_rewards_dones = client.Step(actions);

#ifndef TANDEM_CLIENT_PY_BINDINGS_NATIVE_CLIENT_H_
#define TANDEM_CLIENT_PY_BINDINGS_NATIVE_CLIENT_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client_py/bindings/native_rpc.h"
#include "client_py/bindings/region_views.h"
#include "transport/session/client_side.h"

namespace tandem {

// Legal call order: ClientSide's. Every call but the views raises by the error
// table (errors.h); a second thread inside a call gets ConcurrentUse.
class NativeClient {
 public:
  // Attaches; blocks for up to `timeout_secs`.
  NativeClient(const std::string& name, double timeout_secs,
               const std::string& wait, uint32_t autoreset);

  // Send and Recv in one. Returns a new reference: pybind11's types check that
  // this thread has the GIL, an eighth of a step's instructions. Allocates
  // nothing on success.
  PyObject* Step(pybind11::handle actions);
  void Send(pybind11::handle actions);
  pybind11::tuple Recv(std::optional<double> timeout_secs);
  // The halves of Step, for a caller with float32[num_envs * act_size]. They
  // return no tuple.
  void Post(std::span<const float> actions);
  void Await(double timeout_secs);
  void SendReset(const std::vector<int64_t>& env_ids,
                 const std::vector<std::optional<uint64_t>>& seeds);
  // Makes the engine draw a frame now and waits for it. Returns
  // (uint8[height, width, channels], the caller's own; its metadata as bytes).
  // Unsupported if the engine was started without frames.
  pybind11::tuple DrawnFrame(std::optional<double> timeout_secs);
  // On success views() returns other views.
  void Reconnect(std::optional<double> timeout_secs);
  void Close();

  // Legal while another thread is inside a call, except Reconnect.
  ClientStats Stats() const;

  // The timeout of calls without one of their own; first the constructor's.
  void SetTimeout(double timeout_secs);
  double timeout_secs() const { return timeout_secs_; }

  // RPCs to the same engine: for any thread, also while one is inside a call.
  NativeRpc& rpc() { return rpc_; }

  // As ClientSide's.
  void ServeEnvironments() { client_.ServeEnvironments(); }

  bool has_frames() const { return client_.has_frames(); }
  uint64_t ImageStep() const;
  bool pending() const { return client_.pending(); }
  bool closed() const { return client_.closed(); }
  const RegionViews& views() const { return views_; }
  const ClientSide& side() const { return client_; }

 private:
  class InCall;
  // Raises InvalidAction unless they fit.
  std::span<const float> Checked(pybind11::handle actions) const;
  // Calls `wait` with a function that it must call before it sleeps.
  template <typename Wait>
  static ErrorCode KeepingGil(Wait wait);
  [[noreturn]] void RaiseInvalidAction(pybind11::handle actions) const;
  [[noreturn]] void RaiseCode(ErrorCode code) const;

  std::string name_;
  double timeout_secs_;
  ClientSide client_;
  NativeRpc rpc_;
  RegionViews views_;
  pybind11::tuple results_;  // (obs, rewards, dones)
  // Guarded by the GIL. ClientSide refuses a second thread during each of its
  // calls. This covers Reconnect and Close, which also end the RPC session.
  bool in_call_ = false;
  bool reconnecting_ = false;
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_NATIVE_CLIENT_H_

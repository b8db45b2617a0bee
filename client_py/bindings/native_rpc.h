// NativeRpc: RPCs to an engine, and its streams, for Python.
//
// Data flow: dict -> PackRequest -> RpcClient -> engine -> RpcClient ->
// PayloadValues -> dict.
// Ownership: a NativeClient has one, beside its ClientSide, and outlives it and
// its streams. All calls need the GIL; those that wait release it. Any number
// of Python threads may call, also while another steps.
//
//   NativeRpc rpc(&client_side, 10.0);
//   py::dict answer = rpc.Call(49, request, std::nullopt);
//   std::unique_ptr<NativeStream> stream = rpc.Open(33, request);

#ifndef TANDEM_CLIENT_PY_BINDINGS_NATIVE_RPC_H_
#define TANDEM_CLIENT_PY_BINDINGS_NATIVE_RPC_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "schema/messages/hazel_rpc_generated.h"
#include "transport/memory/fork_guard.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/client_side.h"

namespace tandem {

// Raises by the error table, the engine's errors with its own text. After a
// reconnect or close it returns the items that had come, then ClientClosed.
class NativeStream {
 public:
  NativeStream(std::shared_ptr<RpcClient> client, uint64_t id,
               rpc::MethodId method, std::string region);
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;
  ~NativeStream() { Close(); }

  // The next item's fields; None: the stream is over, or was closed.
  pybind11::object Next(double timeout_secs);
  // The number of Next's last item among all items that the engine made, from
  // 1, dropped ones included; 0: none yet.
  uint64_t number() const { return number_; }
  // Items dropped so far because they were not taken.
  uint64_t dropped() const;
  // Ends the stream at the engine. Does not wait, raises nothing. No effect in
  // a forked child, or when called again.
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

// States: with a session, without one (after EndSession).
class NativeRpc {
 public:
  NativeRpc(ClientSide* side, double timeout_secs)
      : side_(side), born_in_(ForkCount()), timeout_secs_(timeout_secs) {}
  NativeRpc(const NativeRpc&) = delete;
  NativeRpc& operator=(const NativeRpc&) = delete;

  // The answer's fields. Raises by the error table, the engine's errors with
  // its own text; InvalidArgument for an invalid request. An answer that
  // comes after StepTimeout is dropped.
  pybind11::dict Call(uint16_t method, pybind11::handle request,
                      std::optional<double> timeout_secs);
  // Does not wait: errors of the engine come with the first item.
  std::unique_ptr<NativeStream> Open(uint16_t method, pybind11::handle request);

  // The timeout of calls without one of their own.
  void SetTimeout(double timeout_secs) { timeout_secs_ = timeout_secs; }
  double timeout_secs() const { return timeout_secs_; }

  // Before the session ends: other threads' calls get ClientClosed. Waits for
  // them to leave, without the GIL.
  void EndSession();
  // After a successful Reconnect.
  void BeginSession() { has_session_ = true; }

 private:
  std::shared_ptr<RpcClient> Session();

  ClientSide* const side_;
  const uint32_t born_in_;  // ForkCount() of the owner
  double timeout_secs_;
  bool has_session_ = true;
  std::shared_ptr<RpcClient> session_;  // made by its first call
};

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_NATIVE_RPC_H_

// RpcSession: the RpcClient of a side's current session, made by the first
// call.
//
// Data flow: threads -> Client() -> RpcClient; the side's owner -> End, Begin.
// Ownership: the owner of the side has one beside it. Thread-safe.
//
//   RpcSession rpcs(&client_side, {});
//   absl::StatusOr<std::shared_ptr<RpcClient>> client = rpcs.Client();
//   rpcs.End();    // before the side closes or reconnects
//   rpcs.Begin();  // after it has reconnected

#ifndef TANDEM_TRANSPORT_RPC_RPC_SESSION_H_
#define TANDEM_TRANSPORT_RPC_RPC_SESSION_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "transport/memory/fork_guard.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/rpc_side.h"

namespace tandem {

// States: with a session, at first; without one, after End.
class RpcSession {
 public:
  // `side` must outlive this object and its clients.
  RpcSession(RpcSide* side, const RpcClient::Options& options)
      : side_(side), options_(options), born_in_(ForkCount()) {}
  RpcSession(const RpcSession&) = delete;
  RpcSession& operator=(const RpcSession&) = delete;

  // kClientClosed: no session. kForkedChild. kBrokenPeer: as RpcClient::Create.
  absl::StatusOr<std::shared_ptr<RpcClient>> Client();
  // Calls that wait get kClientClosed; blocks until they have returned, at most
  // 20 ms. No effect in a forked child.
  void End();
  void Begin();

 private:
  RpcSide* const side_;
  const RpcClient::Options options_;
  const uint32_t born_in_;
  std::mutex mutex_;
  // Guarded by mutex_.
  bool has_session_ = true;
  std::shared_ptr<RpcClient> client_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_RPC_SESSION_H_

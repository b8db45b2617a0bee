// RpcDispatcher: the methods of an engine's services, for all callers.
//
// Data flow: RpcConnection -> a method's handler -> RpcConnection.
// Ownership: RpcHost owns it; the stepping thread uses it between exchanges.
// Handlers run in that thread, and may read all of its data.
//
//   RpcDispatcher dispatcher;
//   dispatcher.Serve<rpc::GetSceneInfoRequestT, rpc::GetSceneInfoResponseT>(
//       rpc::MethodId::GetSceneInfo,
//       [&](const auto& request) { return scene.GetSceneInfo(request); });
//   RpcConnection client(&dispatcher);
//
// Handlers take and return the plain structs of the schema. They do not depend
// on the RPC rings.

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/guarded.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/rpc/rpc_connection.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Not thread-safe. The Serve methods are legal before the first call.
class RpcDispatcher {
 public:
  RpcDispatcher() = default;
  // `busy`: whether the engine is at work, so that neither handlers nor streams
  // may use it.
  explicit RpcDispatcher(std::function<bool()> busy) : busy_(std::move(busy)) {}
  RpcDispatcher(const RpcDispatcher&) = delete;
  RpcDispatcher& operator=(const RpcDispatcher&) = delete;

  // Serves a method that answers at once. The caller gets errors with their
  // code and text; exceptions of a handler or a stream arrive as kEngineFailed.
  template <typename Request, typename Response>
  void Serve(rpc::MethodId method,
             std::function<absl::StatusOr<Response>(const Request&)> handler);

  // Serves a method that answers later, when its handler calls the RpcAnswer.
  // The caller may cancel the call before by CancelStream.
  template <typename Request, typename Response>
  void ServeLater(
      rpc::MethodId method,
      std::function<void(const Request&, RpcAnswer<Response>)> handler);

  // The same for a handler that reads the bytes of the call, and answers with
  // the method's payload.
  void ServePayloads(rpc::MethodId method,
                     std::function<void(std::span<const uint8_t> envelope,
                                        RpcAnswer<rpc::PayloadUnion>)>
                         handler);

  // Serves a method that answers with a stream.
  template <typename Request>
  void ServeStream(
      rpc::MethodId method,
      std::function<absl::StatusOr<RpcStream>(const Request&)> handler);

  // Answers later calls of this method with kUnsupported and the text `why`.
  // Calls that wait for their answer get it.
  void SwitchOff(rpc::MethodId method, const std::string& why) {
    switched_off_[method] = why;
  }
  void SwitchOn(rpc::MethodId method) { switched_off_.erase(method); }
  // Limits this method's streams to `hz` moments a second; a lower number than
  // kLeastStreamHz counts as kLeastStreamHz.
  void LimitStreams(rpc::MethodId method, double hz) {
    stream_hz_[method] = std::max(hz, kLeastStreamHz);
  }
  // Connections answer calls of this method also while the engine is busy.
  void AnswerWhileBusy(rpc::MethodId method) { while_busy_.insert(method); }
  bool HasHandler(rpc::MethodId method) const {
    return handlers_.contains(method);
  }
  // Whether this method has a handler and is not switched off.
  bool Serves(rpc::MethodId method) const {
    return HasHandler(method) && !switched_off_.contains(method);
  }

  // The rest is for RpcConnection.

  bool Busy() const { return busy_ != nullptr && busy_(); }
  // Whether a call of this method waits until the engine is no longer busy.
  bool MustWait(rpc::MethodId method) const {
    return !while_busy_.contains(method) && Busy();
  }
  // kUnsupported: switched off, or without a handler.
  absl::Status Check(rpc::MethodId method) const;
  // The limit of the method's streams; nullopt: the connection's.
  std::optional<double> StreamHz(rpc::MethodId method) const;
  // Answers a call that Check has accepted, now or later.
  void Handle(RpcConnection* caller, const rpc::Envelope& call) const {
    handlers_.at(call.method())(caller, call);
  }

 private:
  using Handler = std::function<void(RpcConnection*, const rpc::Envelope&)>;

  std::function<bool()> busy_;
  std::map<rpc::MethodId, Handler> handlers_;
  std::set<rpc::MethodId> while_busy_ = {rpc::MethodId::CancelStream};
  std::map<rpc::MethodId, std::string> switched_off_;  // with the reason
  std::map<rpc::MethodId, double> stream_hz_;
};

// ---------------------------------------------------------------------------

template <typename Request, typename Response>
void RpcDispatcher::Serve(
    rpc::MethodId method,
    std::function<absl::StatusOr<Response>(const Request&)> handler) {
  handlers_[method] = [handler = std::move(handler)](
                          RpcConnection* caller, const rpc::Envelope& call) {
    caller->SendResponse(call.method(), call.correlation_id(),
                         Guarded([&]() -> absl::StatusOr<Response> {
                           TANDEM_ASSIGN_OR_RETURN(
                               const Request request,
                               RpcConnection::Unpacked<Request>(call));
                           return handler(request);
                         }));
  };
}

template <typename Request, typename Response>
void RpcDispatcher::ServeLater(
    rpc::MethodId method,
    std::function<void(const Request&, RpcAnswer<Response>)> handler) {
  handlers_[method] = [handler = std::move(handler)](
                          RpcConnection* caller, const rpc::Envelope& call) {
    const std::optional<RpcAnswer<Response>> answer =
        caller->Later<Response>(call);
    if (!answer) return;
    absl::Status status = Guarded([&] {
      const absl::StatusOr<Request> request =
          RpcConnection::Unpacked<Request>(call);
      if (request.ok()) handler(*request, *answer);
      return request.status();
    });
    // No effect if the handler answered before the exception.
    if (!status.ok()) (*answer)(std::move(status));
  };
}

template <typename Request>
void RpcDispatcher::ServeStream(
    rpc::MethodId method,
    std::function<absl::StatusOr<RpcStream>(const Request&)> handler) {
  handlers_[method] = [handler = std::move(handler)](
                          RpcConnection* caller, const rpc::Envelope& call) {
    caller->Open(call, Guarded([&]() -> absl::StatusOr<RpcStream> {
                   TANDEM_ASSIGN_OR_RETURN(
                       const Request request,
                       RpcConnection::Unpacked<Request>(call));
                   return handler(request);
                 }));
  };
}

}  // namespace tandem

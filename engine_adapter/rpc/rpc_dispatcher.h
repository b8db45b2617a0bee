// RpcDispatcher: answers a client's calls by the handlers of an engine's
// services, and sends the items of its streams.
//
// Data flow: EnvelopeReader -> a method's handler -> EnvelopeWriter; the
// sources of due streams -> EnvelopeWriter.
// Ownership: EngineHost owns it; the stepping thread polls it between
// exchanges. Handlers run in that thread, and may read all of its data.
//
//   RpcDispatcher dispatcher;
//   dispatcher.Serve<rpc::GetSceneInfoRequestT, rpc::GetSceneInfoResponseT>(
//       rpc::MethodId::GetSceneInfo,
//       [&](const auto& request) { return scene.GetSceneInfo(request); });
//   dispatcher.Begin(std::move(reader), std::move(writer));  // a client came
//   if (dispatcher.Poll(MonotonicNanos())) side.PollRpcsAgain();
//   dispatcher.End();                                        // it has left
//
// Handlers take and return the plain structs of the schema. They do not depend
// on the RPC rings.

#ifndef TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_
#define TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/base/guarded.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/error.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

// Not thread-safe. States: idle, with a client. The Serve methods are legal in
// idle, before the first Begin. Begin: idle -> with a client. Poll: with a
// client. End: any -> idle.
class RpcDispatcher {
 public:
  struct Limits {
    int calls_per_poll = 8;  // a step waits for at most these
    size_t streams = 64;     // open at the same time
    double stream_hz = 60;   // default of one stream
    size_t late_calls = 64;  // unanswered at the same time
    // The bound on the bytes of answers that wait for a client which does not
    // read. Beyond it the client's calls are not read, and late answers become
    // errors: at most one answer and the errors exceed it. Items of streams are
    // dropped, and counted: all items of a moment while any message waits, and
    // the rest of a moment at this bound.
    size_t waiting_bytes = size_t{64} * 1024 * 1024;
  };

  RpcDispatcher() : RpcDispatcher(Limits()) {}
  // `busy`: whether the engine is at work, so that neither handlers nor streams
  // may use it. Empty: never.
  explicit RpcDispatcher(const Limits& limits, std::function<bool()> busy = {})
      : limits_(limits), busy_(std::move(busy)) {}
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

  // Serves a method that answers with a stream.
  template <typename Request>
  void ServeStream(
      rpc::MethodId method,
      std::function<absl::StatusOr<RpcStream>(const Request&)> handler);

  // Answers later calls of this method with kUnsupported and the text `why`,
  // and ends its streams with this error. Calls that wait for their answer get
  // it.
  void SwitchOff(rpc::MethodId method, const std::string& why);
  void SwitchOn(rpc::MethodId method) { switched_off_.erase(method); }
  // Limits this method's streams to `hz` moments a second; a lower number than
  // kLeastStreamHz counts as kLeastStreamHz.
  void LimitStreams(rpc::MethodId method, double hz) {
    stream_hz_[method] = std::max(hz, kLeastStreamHz);
  }
  // Poll answers calls of this method also while the engine is busy.
  void AnswerWhileBusy(rpc::MethodId method) { while_busy_.insert(method); }
  bool HasHandler(rpc::MethodId method) const {
    return handlers_.contains(method);
  }
  // Whether this method has a handler and is not switched off.
  bool Serves(rpc::MethodId method) const {
    return HasHandler(method) && !switched_off_.contains(method);
  }

  void Begin(EnvelopeReader reader, EnvelopeWriter writer);
  void End();
  bool HasClient() const { return reader_.has_value(); }

  // Answers received calls, sends due items of streams, within the limits, and
  // continues messages for which the ring had no room. Returns whether more
  // work may be ready now. Never blocks; allocates.
  // While the engine is busy, it answers only calls of methods with
  // AnswerWhileBusy, and reads no further than to another one.
  bool Poll(int64_t now_ns);

  // Whether Poll has no work, now or later, unless a message arrives.
  bool IsQuiet() const {
    return streams_.empty() && late_.empty() && !unanswered_ &&
           (!writer_ || writer_->queued_bytes() == 0);
  }
  // The time of Poll's next work if no message arrives: a stream is due, or
  // answers wait for room. nullopt: never.
  std::optional<int64_t> DueNs(int64_t now_ns) const;

  // Whether the client's ring is invalid; then Poll reads nothing until the
  // next Begin.
  bool broken() const { return broken_; }
  // Since Begin: the number of entries that were no envelopes, and of calls
  // without a correlation id, which cannot be answered.
  uint64_t dropped() const;

 private:
  using Handler = std::function<void(const rpc::Envelope&)>;
  struct Stream {
    rpc::MethodId method;
    RpcStream source;
    int64_t period_ns;
    int64_t due_ns;
    // The stream is due, but has no new items, or its items wait for room.
    bool waits = false;
    uint64_t items = 0;  // including lost items
    uint64_t dropped = 0;
  };

  // Returns the call's request, or an error that names the payload it found.
  template <typename Request>
  static absl::StatusOr<Request> Unpacked(const rpc::Envelope& call);
  static absl::Status WrongPayload(const rpc::Envelope& call,
                                   rpc::Payload expected);

  static std::string NameOf(rpc::MethodId method);

  bool Busy() const { return busy_ != nullptr && busy_(); }
  void Answer(const rpc::Envelope& call);
  template <typename Response>
  void SendResponse(rpc::MethodId method, uint64_t correlation_id,
                    absl::StatusOr<Response> response);
  // Whether the call still waits for its answer; if so, removes it from late_.
  bool TakeLate(const std::weak_ptr<const void>& wanted,
                uint64_t correlation_id);
  bool HasRoomForLate(const rpc::Envelope& call);
  bool TooMuchWaits() const {
    return writer_->queued_bytes() > limits_.waiting_bytes;
  }
  absl::Status AskAgain(rpc::MethodId method) const;
  // Returns an answer of the call, or an item of the stream; with the error, if
  // any.
  static rpc::EnvelopeT EnvelopeOf(rpc::MethodId method,
                                   uint64_t correlation_id,
                                   const absl::Status& status = {});
  void Send(const rpc::EnvelopeT& envelope);
  void SendError(rpc::MethodId method, uint64_t correlation_id,
                 const absl::Status& status);
  void Open(const rpc::Envelope& call, absl::StatusOr<RpcStream> stream);
  void Cancel(const rpc::Envelope& call);
  void EndStream(uint64_t correlation_id, const absl::Status& status);
  void Feed(uint64_t correlation_id, Stream* stream, int64_t now_ns);

  Limits limits_;
  std::function<bool()> busy_;
  std::map<rpc::MethodId, Handler> handlers_;
  std::set<rpc::MethodId> while_busy_ = {rpc::MethodId::CancelStream};
  std::map<rpc::MethodId, std::string> switched_off_;  // with the reason
  std::map<rpc::MethodId, double> stream_hz_;
  std::optional<EnvelopeReader> reader_;
  bool unanswered_ = false;  // reader_'s envelope waits until Busy() ends
  std::optional<EnvelopeWriter> writer_;
  std::map<uint64_t, Stream> streams_;  // by correlation id
  // Calls without an answer yet, by correlation id. The object exists as long
  // as the answer is wanted; it is new for each call, since a client may use a
  // correlation id again.
  std::map<uint64_t, std::shared_ptr<const void>> late_;
  bool broken_ = false;
  uint64_t nameless_ = 0;
};

// ---------------------------------------------------------------------------

template <typename Request>
absl::StatusOr<Request> RpcDispatcher::Unpacked(const rpc::Envelope& call) {
  constexpr rpc::Payload kExpected =
      rpc::PayloadUnionTraits<Request>::enum_value;
  if (call.payload_type() != kExpected || call.payload() == nullptr) {
    return WrongPayload(call, kExpected);
  }
  using Table = typename Request::TableType;
  Request request;
  static_cast<const Table*>(call.payload())->UnPackTo(&request);
  return request;
}

template <typename Request, typename Response>
void RpcDispatcher::Serve(
    rpc::MethodId method,
    std::function<absl::StatusOr<Response>(const Request&)> handler) {
  handlers_[method] =
      [this, handler = std::move(handler)](const rpc::Envelope& call) {
        SendResponse(call.method(), call.correlation_id(),
                     Guarded([&]() -> absl::StatusOr<Response> {
                       ASSIGN_OR_RETURN(const Request request,
                                        Unpacked<Request>(call));
                       return handler(request);
                     }));
      };
}

template <typename Request, typename Response>
void RpcDispatcher::ServeLater(
    rpc::MethodId method,
    std::function<void(const Request&, RpcAnswer<Response>)> handler) {
  handlers_[method] =
      [this, handler = std::move(handler)](const rpc::Envelope& call) {
        if (!HasRoomForLate(call)) return;
        std::shared_ptr<const void>& waits = late_[call.correlation_id()];
        waits = std::make_shared<const bool>(true);
        const std::weak_ptr<const void> wanted = waits;
        const RpcAnswer<Response> answer(
            [this, wanted, method = call.method(),
             id = call.correlation_id()](absl::StatusOr<Response> response) {
              if (!TakeLate(wanted, id)) return;
              if (TooMuchWaits()) response = AskAgain(method);
              SendResponse(method, id, std::move(response));
            },
            wanted);
        absl::Status status = Guarded([&] {
          const absl::StatusOr<Request> request = Unpacked<Request>(call);
          if (request.ok()) handler(*request, answer);
          return request.status();
        });
        // No effect if the handler answered before the exception.
        if (!status.ok()) answer(std::move(status));
      };
}

template <typename Response>
void RpcDispatcher::SendResponse(rpc::MethodId method, uint64_t correlation_id,
                                 absl::StatusOr<Response> response) {
  if (!response.ok()) {
    SendError(method, correlation_id, response.status());
    return;
  }
  rpc::EnvelopeT answer = EnvelopeOf(method, correlation_id);
  answer.payload.Set(*std::move(response));
  Send(answer);
}

template <typename Request>
void RpcDispatcher::ServeStream(
    rpc::MethodId method,
    std::function<absl::StatusOr<RpcStream>(const Request&)> handler) {
  handlers_[method] =
      [this, handler = std::move(handler)](const rpc::Envelope& call) {
        Open(call, Guarded([&]() -> absl::StatusOr<RpcStream> {
               ASSIGN_OR_RETURN(const Request request, Unpacked<Request>(call));
               return handler(request);
             }));
      };
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_

// RpcDispatcher: answers a client's commands by the handlers of an engine's
// services, and feeds its streams.
//
// Data flow: EnvelopeReader -> a method's handler -> EnvelopeWriter; streams'
// sources, when they are due -> EnvelopeWriter.
// Ownership: EngineHost's; the thread that steps polls it between exchanges.
// Handlers run in that thread, and may look at whatever it owns.
//
//   RpcDispatcher dispatcher;
//   dispatcher.Serve<rpc::GetSceneInfoRequestT, rpc::GetSceneInfoResponseT>(
//       rpc::MethodId::GetSceneInfo,
//       [&](const auto& request) { return scene.GetSceneInfo(request); });
//   dispatcher.Begin(std::move(reader), std::move(writer));  // a client came
//   if (dispatcher.Poll(MonotonicNanos())) side.HearAgain();
//   dispatcher.End();                                        // it has left
//
// Handlers take and give the plain structs of the schema, and know nothing of
// rings: another door can call the same functions.

#ifndef TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_
#define TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

// What a stream is made of.
struct RpcStream {
  // Items a second that the client asked for; 0: as many as may be.
  double hz = 0;
  // The next item, when it is due; nothing: there is no news. An error ends the
  // stream and is its last word.
  std::function<absl::StatusOr<std::optional<rpc::PayloadUnion>>()> next;
};

// Not thread-safe. States: idle, with a client. Serve: idle, before the first
// Begin. Begin: idle -> with a client. Poll: with a client. End: any -> idle.
class RpcDispatcher {
 public:
  struct Limits {
    int calls_per_poll = 8;  // a step waits no longer than for these
    size_t streams = 64;     // open at a time
    double stream_hz = 60;   // of one stream
    // Answers wait for a client that does not read; beyond this its commands do
    // too. A stream's items are dropped, and counted, long before.
    size_t waiting_bytes = size_t{64} * 1024 * 1024;
  };

  RpcDispatcher() : RpcDispatcher(Limits()) {}
  explicit RpcDispatcher(const Limits& limits) : limits_(limits) {}
  RpcDispatcher(const RpcDispatcher&) = delete;
  RpcDispatcher& operator=(const RpcDispatcher&) = delete;

  // A method that is answered at once. Errors reach the caller with their code
  // and text.
  template <typename Request, typename Response>
  void Serve(rpc::MethodId method,
             std::function<absl::StatusOr<Response>(const Request&)> handler);

  // A method that is answered by a stream.
  template <typename Request>
  void ServeStream(
      rpc::MethodId method,
      std::function<absl::StatusOr<RpcStream>(const Request&)> handler);

  // This method is answered with kUnsupported and this text from now on.
  void SwitchOff(rpc::MethodId method, std::string why);

  void Begin(EnvelopeReader reader, EnvelopeWriter writer);
  void End();
  bool HasClient() const { return reader_.has_value(); }

  // Answers what has come, and sends what streams have, within the limits;
  // writes on what the client had no room for. True: more may be there, and
  // can be answered now. Never blocks; allocates.
  bool Poll(int64_t now_ns);

  // Unless something comes, Poll has nothing to do, now or later.
  bool IsQuiet() const {
    return streams_.empty() && (!writer_ || writer_->queued_bytes() == 0);
  }
  // When Poll has something to do though nothing comes: a stream is due, or
  // answers wait for room. Nothing: never.
  std::optional<int64_t> DueNs(int64_t now_ns) const;

  // The client's words made no sense; nothing of it is heard until the next
  // Begin.
  bool broken() const { return broken_; }
  // Entries that were no envelopes, and calls that could not be answered for
  // want of a correlation id. Since Begin.
  uint64_t dropped() const;

 private:
  using Handler = std::function<void(const rpc::Envelope&)>;
  struct Stream {
    rpc::MethodId method;
    RpcStream source;
    int64_t period_ns;
    int64_t due_ns;
    uint64_t items = 0;
    uint64_t dropped = 0;
  };

  // The call's request, or an error that says what was found in its place.
  template <typename Request>
  static absl::StatusOr<Request> Unpacked(const rpc::Envelope& call);
  static absl::Status WrongPayload(const rpc::Envelope& call,
                                   rpc::Payload expected);

  void Answer(const rpc::Envelope& call);
  void Send(rpc::EnvelopeT envelope);
  void SendError(rpc::MethodId method, uint64_t correlation_id,
                 const absl::Status& status);
  void Open(const rpc::Envelope& call, absl::StatusOr<RpcStream> stream);
  void Cancel(const rpc::Envelope& call);
  bool Feed(uint64_t correlation_id, Stream* stream, int64_t now_ns);

  Limits limits_;
  std::map<rpc::MethodId, Handler> handlers_;
  std::optional<EnvelopeReader> reader_;
  std::optional<EnvelopeWriter> writer_;
  std::map<uint64_t, Stream> streams_;  // by correlation id
  flatbuffers::FlatBufferBuilder builder_;
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
        const absl::StatusOr<Request> request = Unpacked<Request>(call);
        absl::StatusOr<Response> response =
            request.ok() ? handler(*request)
                         : absl::StatusOr<Response>(request.status());
        if (!response.ok()) {
          SendError(call.method(), call.correlation_id(), response.status());
          return;
        }
        rpc::EnvelopeT answer;
        answer.method = call.method();
        answer.correlation_id = call.correlation_id();
        answer.payload.Set(*std::move(response));
        Send(std::move(answer));
      };
}

template <typename Request>
void RpcDispatcher::ServeStream(
    rpc::MethodId method,
    std::function<absl::StatusOr<RpcStream>(const Request&)> handler) {
  handlers_[method] =
      [this, handler = std::move(handler)](const rpc::Envelope& call) {
        const absl::StatusOr<Request> request = Unpacked<Request>(call);
        Open(call, request.ok() ? handler(*request)
                                : absl::StatusOr<RpcStream>(request.status()));
      };
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_RPC_RPC_DISPATCHER_H_

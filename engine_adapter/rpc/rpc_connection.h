// RpcConnection: one caller's calls and streams: those of the client, or of one
// attendant.
//
// Data flow: EnvelopeReader -> the dispatcher's handler -> EnvelopeWriter; the
// sources of due streams -> EnvelopeWriter.
// Ownership: RpcHost owns one for each caller; the stepping thread polls them
// between exchanges.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frames/image_slot.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {

class RpcDispatcher;

// Returns the method's name for people, for any number.
std::string NameOf(rpc::MethodId method);

// Not thread-safe, not movable. States: idle, open. Begin: any -> open. End:
// any -> idle. Poll is legal in both.
class RpcConnection {
 public:
  struct Limits {
    int calls_per_poll = 8;  // a step waits for at most these
    size_t streams = 64;     // open at the same time
    double stream_hz = 60;   // default of one stream
    size_t late_calls = 64;  // unanswered at the same time
    // The bound on the bytes of answers that wait for a caller which does not
    // read. Beyond it the caller's calls are not read, and late answers become
    // errors: at most one answer and the errors exceed it. Items of streams are
    // dropped, and counted: all items of a moment while any message waits, and
    // the rest of a moment at this bound.
    size_t waiting_bytes = size_t{64} * 1024 * 1024;
  };
  // Whether the caller may call this method now; else the error that it gets.
  using Admission = std::function<absl::Status(rpc::MethodId)>;

  // `dispatcher` must outlive this object. Empty `admission`: all methods.
  // `images`: the caller's slots for images.
  explicit RpcConnection(RpcDispatcher* dispatcher)
      : RpcConnection(dispatcher, Limits()) {}
  RpcConnection(RpcDispatcher* dispatcher, const Limits& limits,
                Admission admission = {}, ImageSlotWriter images = {});
  RpcConnection(const RpcConnection&) = delete;
  RpcConnection& operator=(const RpcConnection&) = delete;

  void Begin(EnvelopeReader reader, EnvelopeWriter writer);
  void End();
  bool IsOpen() const { return reader_.has_value(); }

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

  // Whether the caller's ring is invalid; then Poll reads nothing until the
  // next Begin.
  bool broken() const { return broken_; }
  // Since Begin: the number of entries that were no envelopes, and of calls
  // without a correlation id, which cannot be answered.
  uint64_t dropped() const;

  // Ends all streams of this method with `why` as the last message.
  void EndStreams(rpc::MethodId method, const absl::Status& why);

  // The rest is for RpcDispatcher's handlers.

  static absl::Status WrongPayload(const rpc::Envelope& call,
                                   rpc::Payload expected);
  // Returns the call's request, or an error that names the payload it found.
  template <typename Request>
  static absl::StatusOr<Request> Unpacked(const rpc::Envelope& call);
  template <typename Response>
  void SendResponse(rpc::MethodId method, uint64_t correlation_id,
                    absl::StatusOr<Response> response, bool to_slot = false);
  void Open(const rpc::Envelope& call, absl::StatusOr<RpcStream> stream);
  // The bytes of the call that is being answered.
  std::span<const uint8_t> call_bytes() const;
  // The answer of a call that is answered later; nullopt if too many are: then
  // the caller has the error already.
  template <typename Response>
  std::optional<RpcAnswer<Response>> Later(const rpc::Envelope& call);

 private:
  struct Stream {
    rpc::MethodId method;
    RpcStream source;
    int64_t period_ns;
    int64_t due_ns;
    // The stream is due, but has no new items, or its items wait for room.
    bool waits = false;
    bool to_slot = false;  // of the request
    uint64_t items = 0;    // including lost items
    uint64_t dropped = 0;
  };

  // Whether the call's `to_slot` is set.
  static bool WantsSlot(const rpc::Envelope& call);
  void Answer(const rpc::Envelope& call);
  // Why the call gets no answer of a handler; OK: it does.
  absl::Status Refusal(const rpc::Envelope& call) const;
  // Whether the call still waits for its answer; if so, removes it from late_.
  bool TakeLate(const std::weak_ptr<const void>& wanted,
                uint64_t correlation_id);
  bool TooMuchWaits() const {
    return writer_->queued_bytes() > limits_.waiting_bytes;
  }
  absl::Status AskAgain(rpc::MethodId method) const;
  // Returns an answer of the call, or an item of the stream; with the error, if
  // any.
  static rpc::EnvelopeT EnvelopeOf(
      rpc::MethodId method, uint64_t correlation_id,
      const absl::Status& status = absl::OkStatus());
  // `to_slot`: writes an image into a slot of the caller, if one is free.
  // kMessageTooLarge: nothing was sent.
  ErrorCode Send(rpc::EnvelopeT envelope, bool to_slot = false);
  ImageNotice PlaceImage(bool to_slot, rpc::ImageFrameT* frame);
  absl::Status TooLarge(rpc::MethodId method) const;
  void SendError(rpc::MethodId method, uint64_t correlation_id,
                 const absl::Status& status);
  void Cancel(const rpc::Envelope& call);
  void EndStream(uint64_t correlation_id, const absl::Status& status);
  void Feed(uint64_t correlation_id, Stream* stream, int64_t now_ns);

  RpcDispatcher* const dispatcher_;
  const Limits limits_;
  const Admission admission_;
  std::optional<EnvelopeReader> reader_;
  bool unanswered_ =
      false;  // reader_'s envelope waits until the engine is idle
  std::optional<EnvelopeWriter> writer_;
  ImageSlotWriter images_;
  std::map<uint64_t, Stream> streams_;  // by correlation id
  // Calls without an answer yet, by correlation id. The object exists as long
  // as the answer is wanted; it is new for each call, since a caller may use a
  // correlation id again.
  std::map<uint64_t, std::shared_ptr<const void>> late_;
  bool broken_ = false;
  uint64_t nameless_ = 0;
};

// ---------------------------------------------------------------------------

template <typename Request>
absl::StatusOr<Request> RpcConnection::Unpacked(const rpc::Envelope& call) {
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

template <typename Response>
void RpcConnection::SendResponse(rpc::MethodId method, uint64_t correlation_id,
                                 absl::StatusOr<Response> response,
                                 bool to_slot) {
  if (!response.ok()) {
    SendError(method, correlation_id, response.status());
    return;
  }
  rpc::EnvelopeT answer = EnvelopeOf(method, correlation_id);
  if constexpr (std::is_same_v<Response, rpc::PayloadUnion>) {
    answer.payload = *std::move(response);
  } else {
    answer.payload.Set(*std::move(response));
  }
  if (Send(std::move(answer), to_slot) == ErrorCode::kMessageTooLarge) {
    SendError(method, correlation_id, TooLarge(method));
  }
}

template <typename Response>
std::optional<RpcAnswer<Response>> RpcConnection::Later(
    const rpc::Envelope& call) {
  const rpc::MethodId method = call.method();
  const uint64_t id = call.correlation_id();
  if (late_.size() >= limits_.late_calls) {
    SendError(method, id,
              // kRingFull, since the caller may try again later.
              MakeError(ErrorCode::kRingFull,
                        absl::StrCat(NameOf(method), ": expected at most ",
                                     limits_.late_calls,
                                     " unanswered calls, found as many; await "
                                     "their answers first")));
    return std::nullopt;
  }
  std::shared_ptr<const void>& waits = late_[id];
  waits = std::make_shared<const bool>(true);
  const std::weak_ptr<const void> wanted = waits;
  return RpcAnswer<Response>(
      [this, wanted, method, id,
       to_slot = WantsSlot(call)](absl::StatusOr<Response> response) {
        if (!TakeLate(wanted, id)) return;
        if (TooMuchWaits()) response = AskAgain(method);
        SendResponse(method, id, std::move(response), to_slot);
      },
      wanted);
}

}  // namespace tandem

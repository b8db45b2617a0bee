#include "engine_adapter/rpc/rpc_connection.h"

#include <algorithm>
#include <cmath>

#include "base/guarded.h"
#include "engine_adapter/rpc/rpc_dispatcher.h"

namespace tandem {
namespace {

// The interval of polls of the ring for room while answers wait.
constexpr int64_t kRoomNs = 1'000'000;

std::string Name(rpc::Payload payload) {
  const char* const name = rpc::EnumNamePayload(payload);
  return *name != '\0' ? name
                       : absl::StrCat("payload ", static_cast<int>(payload));
}

}  // namespace

std::string NameOf(rpc::MethodId method) {
  const char* const name = rpc::EnumNameMethodId(method);
  return *name != '\0' ? name
                       : absl::StrCat("method ", static_cast<int>(method));
}

RpcConnection::RpcConnection(RpcDispatcher* dispatcher, const Limits& limits,
                             Admission admission, ImageSlotWriter images)
    : dispatcher_(dispatcher),
      limits_(limits),
      admission_(std::move(admission)),
      images_(std::move(images)) {}

void RpcConnection::Begin(EnvelopeReader reader, EnvelopeWriter writer) {
  End();
  reader_ = std::move(reader);
  writer_ = std::move(writer);
  images_.Begin();
}

void RpcConnection::End() {
  streams_.clear();
  late_.clear();
  reader_.reset();
  unanswered_ = false;
  writer_.reset();
  broken_ = false;
  nameless_ = 0;
}

uint64_t RpcConnection::dropped() const {
  return nameless_ + (reader_ ? reader_->dropped() : 0);
}

bool RpcConnection::Poll(int64_t now_ns) {
  if (!reader_ || broken_) return false;
  if (writer_->Pump() == ErrorCode::kBrokenPeer) broken_ = true;
  bool more = true;
  for (int calls = 0; more && !broken_ && calls < limits_.calls_per_poll;
       ++calls) {
    if (TooMuchWaits()) {
      more = false;  // the client must read first; see DueNs
      break;
    }
    switch (unanswered_ ? EnvelopeReader::Got::kEnvelope : reader_->Next()) {
      case EnvelopeReader::Got::kNothing:
        more = false;
        break;
      case EnvelopeReader::Got::kEnvelope:
        unanswered_ = dispatcher_->MustWait(reader_->envelope().method());
        if (unanswered_) return true;
        Answer(reader_->envelope());
        break;
      case EnvelopeReader::Got::kPiece:
        break;
      case EnvelopeReader::Got::kDropped:
        if (reader_->problem_correlation_id() != 0) {
          SendError(rpc::MethodId::NONE, reader_->problem_correlation_id(),
                    MakeError(reader_->problem_code(), reader_->problem()));
        }
        break;
      case EnvelopeReader::Got::kBrokenPeer:
        broken_ = true;
        break;
    }
  }
  const bool feeds = !broken_ && !streams_.empty() && !dispatcher_->Busy();
  for (auto stream = streams_.begin();
       feeds && !broken_ && stream != streams_.end();) {
    const auto current = stream++;
    Feed(current->first, &current->second, now_ns);
  }
  return more && !broken_;
}

std::optional<int64_t> RpcConnection::DueNs(int64_t now_ns) const {
  std::optional<int64_t> due;
  if (!writer_ || broken_) return due;
  if (writer_->queued_bytes() > 0) due = now_ns + kRoomNs;
  for (const auto& [id, stream] : streams_) {
    if (stream.waits) continue;
    due = std::min(due.value_or(stream.due_ns), stream.due_ns);
  }
  return due;
}

absl::Status RpcConnection::WrongPayload(const rpc::Envelope& call,
                                         rpc::Payload expected) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat(NameOf(call.method()), ": expected ", Name(expected),
                   ", found ", Name(call.payload_type())));
}

void RpcConnection::Answer(const rpc::Envelope& call) {
  const uint64_t id = call.correlation_id();
  if (id == 0) {
    ++nameless_;
    return;
  }
  if (call.method() == rpc::MethodId::CancelStream) {
    Cancel(call);
    return;
  }
  if (absl::Status status = Refusal(call); !status.ok()) {
    SendError(call.method(), id, status);
    return;
  }
  dispatcher_->Handle(this, call);
}

absl::Status RpcConnection::Refusal(const rpc::Envelope& call) const {
  const uint64_t id = call.correlation_id();
  if (streams_.contains(id) || late_.contains(id)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("correlation_id: expected one that is "
                                  "not in use, found ",
                                  id, ", which is; that goes on"));
  }
  TANDEM_RETURN_IF_ERROR(dispatcher_->Check(call.method()));
  return admission_ ? admission_(call.method()) : absl::OkStatus();
}

bool RpcConnection::WantsSlot(const rpc::Envelope& call) {
  if (const auto* const request = call.payload_as_GetCameraFrameRequest()) {
    return request->to_slot();
  }
  if (const auto* const request = call.payload_as_StreamCameraRequest()) {
    return request->to_slot();
  }
  if (const auto* const request = call.payload_as_GetViewportFrameRequest()) {
    return request->to_slot();
  }
  const auto* const request = call.payload_as_StartViewportStreamRequest();
  return request != nullptr && request->to_slot();
}

ErrorCode RpcConnection::Send(rpc::EnvelopeT envelope, bool to_slot) {
  rpc::ImageFrameT* frame = envelope.payload.AsImageFrame();
  if (auto* const named = envelope.payload.AsNamedImageFrame()) {
    frame = named->frame.get();
  }
  const ImageNotice notice =
      frame != nullptr ? PlaceImage(to_slot, frame) : ImageNotice();
  const ErrorCode code = writer_->Post(envelope);
  if (code == ErrorCode::kBrokenPeer) broken_ = true;
  if (code == ErrorCode::kMessageTooLarge) images_.Withdraw(notice);
  return code;
}

absl::Status RpcConnection::TooLarge(rpc::MethodId method) const {
  return MakeError(
      ErrorCode::kMessageTooLarge,
      absl::StrCat(NameOf(method),
                   ": expected an answer whose envelope has at most ",
                   writer_->max_envelope_bytes(),
                   " bytes, found a larger one; ask for less"));
}

ImageNotice RpcConnection::PlaceImage(bool to_slot, rpc::ImageFrameT* frame) {
  const ImageNotice notice =
      to_slot ? images_.Write(std::as_bytes(std::span(frame->data)))
              : ImageNotice();
  frame->slot_seq = notice.seq;
  frame->slot_bytes = notice.bytes;
  frame->slot = notice.slot;
  if (notice.seq != 0) frame->data.clear();
  return notice;
}

void RpcConnection::SendError(rpc::MethodId method, uint64_t correlation_id,
                              const absl::Status& status) {
  (void)Send(EnvelopeOf(method, correlation_id, status));
}

rpc::EnvelopeT RpcConnection::EnvelopeOf(rpc::MethodId method,
                                         uint64_t correlation_id,
                                         const absl::Status& status) {
  rpc::EnvelopeT envelope;
  envelope.method = method;
  envelope.correlation_id = correlation_id;
  envelope.error_code = static_cast<uint16_t>(CodeOf(status));
  envelope.error_message = std::string(status.message());
  return envelope;
}

bool RpcConnection::TakeLate(const std::weak_ptr<const void>& wanted,
                             uint64_t correlation_id) {
  if (wanted.expired()) return false;
  late_.erase(correlation_id);
  return true;
}

absl::Status RpcConnection::AskAgain(rpc::MethodId method) const {
  return MakeError(
      ErrorCode::kRingFull,
      absl::StrCat(NameOf(method), ": expected at most ", limits_.waiting_bytes,
                   " bytes of unread answers, found more: read them, then "
                   "call again"));
}

std::span<const uint8_t> RpcConnection::call_bytes() const {
  const std::span<const uint64_t> words = reader_->envelope_words();
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()};
}

void RpcConnection::Open(const rpc::Envelope& call,
                         absl::StatusOr<RpcStream> stream) {
  if (stream.ok() && streams_.size() >= limits_.streams) {
    stream = MakeError(ErrorCode::kRingFull,
                       absl::StrCat(NameOf(call.method()),
                                    ": expected at most ", limits_.streams,
                                    " open streams, found as many; cancel "
                                    "one first"));
  }
  if (stream.ok() && stream->hz != 0 &&
      !(stream->hz >= kLeastStreamHz && std::isfinite(stream->hz))) {
    stream = MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(NameOf(call.method()), ": expected a rate of ",
                     kLeastStreamHz, " or more, or 0, found ", stream->hz));
  }
  if (!stream.ok()) {
    SendError(call.method(), call.correlation_id(), stream.status());
    return;
  }
  const double most =
      dispatcher_->StreamHz(call.method()).value_or(limits_.stream_hz);
  const double hz = stream->hz > 0 ? std::min(stream->hz, most) : most;
  streams_.emplace(call.correlation_id(),
                   Stream{.method = call.method(),
                          .source = *std::move(stream),
                          .period_ns = static_cast<int64_t>(1e9 / hz),
                          .due_ns = 0,
                          .to_slot = WantsSlot(call)});
}

void RpcConnection::Cancel(const rpc::Envelope& call) {
  const absl::StatusOr<rpc::CancelStreamRequestT> request =
      Unpacked<rpc::CancelStreamRequestT>(call);
  if (!request.ok()) {
    SendError(call.method(), call.correlation_id(), request.status());
    return;
  }
  rpc::CancelStreamResponseT response;
  response.success = late_.erase(request->correlation_id) > 0;
  if (streams_.contains(request->correlation_id)) {
    response.success = true;
    EndStream(request->correlation_id, absl::OkStatus());
  }
  SendResponse<rpc::CancelStreamResponseT>(call.method(), call.correlation_id(),
                                           std::move(response));
}

void RpcConnection::EndStreams(rpc::MethodId method, const absl::Status& why) {
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const auto current = stream++;
    if (current->second.method == method) EndStream(current->first, why);
  }
}

// Sends the stream's last message.
void RpcConnection::EndStream(uint64_t correlation_id,
                              const absl::Status& status) {
  const auto stream = streams_.find(correlation_id);
  rpc::EnvelopeT last =
      EnvelopeOf(stream->second.method, correlation_id, status);
  last.dropped = stream->second.dropped;
  last.end_of_stream = true;
  streams_.erase(stream);
  (void)Send(std::move(last));
}

void RpcConnection::Feed(uint64_t correlation_id, Stream* stream,
                         int64_t now_ns) {
  if (now_ns < stream->due_ns) return;
  // A slow client loses these items; the stream does not wait.
  const bool has_room = writer_->queued_bytes() == 0;
  size_t lost = 0;
  absl::StatusOr<std::vector<rpc::PayloadUnion>> items;
  if (has_room) {
    items = Guarded([stream] { return stream->source.next(); });
    stream->waits = items.ok() && items->empty();
  } else {
    if (stream->source.pass) lost = stream->source.pass();
    stream->waits = lost == 0;
  }
  if (stream->waits) return;
  // Skips missed moments.
  stream->due_ns += stream->period_ns;
  if (stream->due_ns <= now_ns) stream->due_ns = now_ns + stream->period_ns;
  if (!has_room) {
    stream->items += lost;
    stream->dropped += lost;
    return;
  }
  if (!items.ok()) {
    EndStream(correlation_id, items.status());
    return;
  }
  for (rpc::PayloadUnion& item : *items) {
    ++stream->items;
    if (TooMuchWaits()) {
      ++stream->dropped;
      continue;
    }
    rpc::EnvelopeT envelope = EnvelopeOf(stream->method, correlation_id);
    envelope.dropped = stream->dropped;
    envelope.payload = std::move(item);
    envelope.stream_number = stream->items;
    if (Send(std::move(envelope), stream->to_slot) ==
        ErrorCode::kMessageTooLarge) {
      EndStream(correlation_id, TooLarge(stream->method));
      return;
    }
  }
}

}  // namespace tandem

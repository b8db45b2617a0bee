#include "transport/rpc/rpc_client.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/await.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"
#include "transport/memory/fork_guard.h"
#include "transport/session/engine_watch.h"

namespace tandem {
namespace {

// The interval at which a waiting thread stops reading: another caller may have
// an earlier deadline or more to write, and a signal may have arrived.
constexpr int64_t kReadNs = 20'000'000;
// The longest time for reading further messages: an engine may send without
// end.
constexpr int64_t kTakeNs = 1'000'000;
// Calls wait while the engine has more unread bytes than this.
constexpr size_t kUnreadBytes = size_t{1} << 20;

// Returns the engine's error.
absl::Status ErrorOf(const rpc::Envelope& envelope) {
  const ErrorCode code = static_cast<ErrorCode>(envelope.error_code());
  const flatbuffers::String* const text = envelope.error_message();
  return MakeError(
      IsKnown(code) && code != ErrorCode::kOk ? code : ErrorCode::kEngineFailed,
      text != nullptr ? absl::string_view(text->c_str(), text->size())
                      : MeaningOf(code));
}

// Takes the image that an answer or a stream's item announces in a slot. Empty:
// as RpcMessage::TakeImage.
ImageLease LeaseOf(const rpc::Envelope& envelope, const ImagePlace& place) {
  const auto* const named = envelope.payload_as_NamedImageFrame();
  const rpc::ImageFrame* const frame =
      named != nullptr ? named->frame() : envelope.payload_as_ImageFrame();
  if (frame == nullptr || frame->slot_seq() == 0) return {};
  return {place,
          {.seq = frame->slot_seq(),
           .bytes = frame->slot_bytes(),
           .slot = frame->slot()}};
}

bool IsError(const rpc::Envelope& envelope) {
  return envelope.error_code() != 0 || (envelope.error_message() != nullptr &&
                                        envelope.error_message()->size() > 0);
}

}  // namespace

RpcMessage::RpcMessage(const EnvelopeReader& reader, const ImagePlace& place)
    : words_(reader.envelope_words().begin(), reader.envelope_words().end()),
      image_(LeaseOf(envelope(), place)) {}

absl::StatusOr<std::unique_ptr<RpcClient>> RpcClient::Create(
    RpcSide* side, const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(RingReader reader, side->RpcRingReader());
  TANDEM_ASSIGN_OR_RETURN(RingWriter writer, side->RpcRingWriter());
  return std::unique_ptr<RpcClient>(
      new RpcClient(side, EnvelopeReader(std::move(reader), {}),
                    EnvelopeWriter(std::move(writer)), options));
}

RpcClient::RpcClient(RpcSide* side, EnvelopeReader reader,
                     EnvelopeWriter writer, const Options& options)
    : side_(side),
      place_(side->image_place()),
      options_(options),
      born_in_(ForkCount()),
      reader_(std::move(reader)),
      waiter_(side->RpcWaiter()),
      writer_(std::move(writer)) {}

absl::StatusOr<RpcMessage> RpcClient::Call(PackedCall call, Deadline deadline) {
  if (ForkCount() != born_in_) return Ended(ErrorCode::kForkedChild);
  Lock lock(mutex_);
  absl::Status status = Await(
      lock, [&] { return HasRoom(); }, deadline);
  if (!status.ok()) return status;
  TANDEM_ASSIGN_OR_RETURN(const uint64_t id, Post(&call));
  const auto waiting = calls_.emplace(id, std::nullopt).first;
  status = Await(
      lock, [&] { return waiting->second.has_value(); }, deadline);
  auto answer = calls_.extract(waiting);
  if (!status.ok()) {
    cancelled_.push_back(id);
    WriteOn();
    return status;
  }
  return *std::move(answer.mapped());
}

absl::StatusOr<uint64_t> RpcClient::Open(PackedCall call) {
  if (ForkCount() != born_in_) return Ended(ErrorCode::kForkedChild);
  const Lock lock(mutex_);
  WriteOn();
  if (!HasRoom()) return Ended(ErrorCode::kRingFull);
  absl::StatusOr<uint64_t> id = Post(&call);
  if (id.ok()) streams_[*id];
  return id;
}

absl::StatusOr<std::optional<RpcMessage>> RpcClient::Next(uint64_t stream,
                                                          Deadline deadline) {
  if (ForkCount() != born_in_) return Ended(ErrorCode::kForkedChild);
  Lock lock(mutex_);
  const auto found = [&] { return streams_.find(stream); };
  // Another thread may have closed the stream during the wait.
  absl::Status status = Await(
      lock,
      [&] {
        const auto it = found();
        return it == streams_.end() || !it->second.items.empty() ||
               it->second.over;
      },
      deadline);
  const auto it = found();
  if (it != streams_.end() && !it->second.items.empty()) {
    RpcMessage item = std::move(it->second.items.front());
    it->second.items.pop_front();
    it->second.bytes -= item.bytes();
    return std::optional<RpcMessage>(std::move(item));
  }
  if (!status.ok()) return status;
  if (it != streams_.end() && !it->second.error.ok()) return it->second.error;
  return std::optional<RpcMessage>();
}

uint64_t RpcClient::Dropped(uint64_t stream) const {
  const Lock lock(mutex_);
  const auto it = streams_.find(stream);
  return it == streams_.end()
             ? 0
             : it->second.dropped_by_engine + it->second.dropped_here;
}

uint64_t RpcClient::Unclaimed() const {
  const Lock lock(mutex_);
  return unclaimed_;
}

void RpcClient::Close(uint64_t stream) {
  if (ForkCount() != born_in_) return;
  const Lock lock(mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  if (!it->second.over) cancelled_.push_back(stream);
  streams_.erase(it);
  arrived_.notify_all();
  WriteOn();
}

// Calls that timed out are still in the queue, and are sent first.
bool RpcClient::HasRoom() const {
  return writer_.queued_bytes() < kUnreadBytes;
}

// Gives the call an id and returns it. Sends as much as the ring has room for.
absl::StatusOr<uint64_t> RpcClient::Post(PackedCall* call) {
  if (lost_ != ErrorCode::kOk) return Ended(lost_);
  const uint64_t id = ++last_id_;
  call->SetCorrelationId(id);
  const ErrorCode code = writer_.Post(call->bytes(), id);
  side_->AnnounceRpcs();
  if (code == ErrorCode::kBrokenPeer) return Ended(lost_ = code);
  if (code == ErrorCode::kMessageTooLarge) return Ended(code);
  return id;
}

// Sends waiting messages while there is room: first the queue, then
// cancellations.
void RpcClient::WriteOn() {
  if (lost_ != ErrorCode::kOk) return;
  const size_t waiting = writer_.queued_bytes();
  ErrorCode code = writer_.Pump();
  if (writer_.queued_bytes() != waiting) side_->AnnounceRpcs();
  while (code != ErrorCode::kBrokenPeer && !cancelled_.empty() && HasRoom()) {
    rpc::CancelStreamRequestT request;
    request.correlation_id = cancelled_.front();
    cancelled_.pop_front();
    rpc::EnvelopeT cancel;
    cancel.method = rpc::MethodId::CancelStream;
    cancel.correlation_id = ++last_id_;  // no caller waits for its answer
    cancel.payload.Set(std::move(request));
    code = writer_.Post(cancel);
    side_->AnnounceRpcs();
  }
  if (code == ErrorCode::kBrokenPeer) lost_ = code;
}

void RpcClient::End() {
  if (ForkCount() != born_in_) return;
  Lock lock(mutex_);
  if (lost_ == ErrorCode::kOk) lost_ = ErrorCode::kClientClosed;
  arrived_.notify_all();
  tandem::Await(arrived_, lock, [&] { return waiting_ == 0; });
}

// Blocks until `ready()`, which is called under the lock.
template <typename Ready>
absl::Status RpcClient::Await(Lock& lock, Ready ready, Deadline deadline) {
  ++waiting_;
  absl::Status status = WaitFor(lock, ready, deadline);
  if (--waiting_ == 0) arrived_.notify_all();  // End may wait for it
  return status;
}

template <typename Ready>
absl::Status RpcClient::WaitFor(Lock& lock, Ready& ready, Deadline deadline) {
  EngineWatch watch(*side_, options_.interrupted);
  int64_t next_check_ns = 0;
  for (;;) {
    WriteOn();
    if (ready()) return absl::OkStatus();
    if (lost_ != ErrorCode::kOk) return Ended(lost_);
    const int64_t now = MonotonicNanos();
    if (deadline.PassedAt(now)) {
      if (!reading_) TakeAll(reader_.Next());
      return ready() ? absl::OkStatus() : Ended(ErrorCode::kStepTimeout);
    }
    // The waiter below does this too, but only in a long wait.
    if (next_check_ns == 0) next_check_ns = now + kReadNs;
    if (now >= next_check_ns) {
      next_check_ns = now + kReadNs;
      lock.unlock();
      const ErrorCode code = watch.Check(now, /*interrupted=*/false);
      lock.lock();
      if (code == ErrorCode::kInterrupted && !ready()) return Ended(code);
      continue;
    }
    const int64_t slice = std::min(deadline.at_ns() - now, kReadNs);
    if (reading_) {
      arrived_.wait_for(lock, std::chrono::nanoseconds(slice));
      continue;
    }
    reading_ = true;
    EnvelopeReader::Got got = EnvelopeReader::Got::kNothing;
    lock.unlock();
    const ErrorCode code = waiter_.Until(
        [&] {
          got = reader_.Next();
          return got != EnvelopeReader::Got::kNothing;
        },
        Deadline::At(now + slice), watch);
    lock.lock();
    TakeAll(got);
    reading_ = false;
    arrived_.notify_all();
    if (code == ErrorCode::kPeerGone && lost_ == ErrorCode::kOk) lost_ = code;
    if (code == ErrorCode::kInterrupted && !ready()) return Ended(code);
  }
}

// Handles the reader's result, and further messages while there is time.
void RpcClient::TakeAll(EnvelopeReader::Got first) {
  if (first == EnvelopeReader::Got::kNothing) return;
  const Deadline end = Deadline::At(MonotonicNanos() + kTakeNs);
  EnvelopeReader::Got got = first;
  while (got != EnvelopeReader::Got::kNothing) {
    Take(got);
    if (lost_ != ErrorCode::kOk || end.PassedAt(MonotonicNanos())) break;
    got = reader_.Next();
  }
}

// Passes an envelope to its call or stream.
void RpcClient::Take(EnvelopeReader::Got got) {
  switch (got) {
    case EnvelopeReader::Got::kBrokenPeer:
      lost_ = ErrorCode::kBrokenPeer;
      return;
    case EnvelopeReader::Got::kDropped:
      TakeDropped(reader_.problem_correlation_id());
      return;
    case EnvelopeReader::Got::kEnvelope:
      TakeEnvelope(reader_.envelope());
      return;
    case EnvelopeReader::Got::kNothing:
    case EnvelopeReader::Got::kPiece:
      return;
  }
}

void RpcClient::TakeDropped(uint64_t id) {
  if (const auto it = streams_.find(id); it != streams_.end()) {
    ++it->second.dropped_here;
  }
  const auto call = calls_.find(id);
  if (call == calls_.end() || call->second.has_value()) return;
  const bool too_large = reader_.problem_code() == ErrorCode::kMessageTooLarge;
  call->second = MakeError(
      too_large ? ErrorCode::kMessageTooLarge : ErrorCode::kEngineFailed,
      absl::StrCat(
          "region '", side_->name(),
          "': the engine's answer cannot be read: ", reader_.problem()));
}

void RpcClient::DropEnvelope(const rpc::Envelope& envelope) {
  ++unclaimed_;
  const ImageLease unused = LeaseOf(envelope, place_);  // its end releases it
}

void RpcClient::TakeEnvelope(const rpc::Envelope& envelope) {
  const uint64_t id = envelope.correlation_id();
  if (const auto call = calls_.find(id); call != calls_.end()) {
    if (call->second.has_value()) {  // the first answer counts
      DropEnvelope(envelope);
      return;
    }
    if (IsError(envelope)) {
      call->second = ErrorOf(envelope);
    } else {
      call->second = RpcMessage(reader_, place_);
    }
    return;
  }
  if (envelope.method() == rpc::MethodId::CancelStream) return;
  const auto it = streams_.find(id);
  if (it == streams_.end() || it->second.over) {
    DropEnvelope(envelope);
    return;
  }
  Stream& stream = it->second;
  stream.dropped_by_engine = envelope.dropped();
  if (IsError(envelope)) stream.error = ErrorOf(envelope);
  // An error before any item: the engine did not open the stream.
  if (envelope.end_of_stream() || IsError(envelope)) {
    stream.over = true;
    return;
  }
  const RpcMessage& item = stream.items.emplace_back(reader_, place_);
  stream.bytes += item.bytes();
  while (stream.items.size() > 1 &&
         (stream.items.size() > options_.stream_items ||
          stream.bytes > options_.stream_bytes)) {
    stream.bytes -= stream.items.front().bytes();
    stream.items.pop_front();
    ++stream.dropped_here;
  }
}

absl::Status RpcClient::Ended(ErrorCode code) const {
  switch (code) {
    case ErrorCode::kStepTimeout:
      return MakeError(
          code, absl::StrCat("region '", side_->name(),
                             "': the engine did not answer before the "
                             "deadline; it has been ",
                             side_->EnginePhase(),
                             ": in a long step, stopped, or waiting for what "
                             "the call waits for"));
    case ErrorCode::kPeerGone:
      return MakeError(
          code, absl::StrCat("region '", side_->name(),
                             "': the engine is gone; attach to the next"));
    case ErrorCode::kMessageTooLarge:
      return MakeError(
          code, absl::StrCat("region '", side_->name(),
                             "': expected a request of at most ",
                             writer_.max_envelope_bytes(),
                             " bytes, found a larger one; nothing was sent"));
    case ErrorCode::kClientClosed:
      return MakeError(
          code, absl::StrCat("region '", side_->name(),
                             "': the session that this call or stream belonged "
                             "to was ended by a close or reconnect"));
    default:
      return MakeError(code, absl::StrCat("region '", side_->name(),
                                          "': ", MeaningOf(code)));
  }
}

}  // namespace tandem

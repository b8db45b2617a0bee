#include "transport/rpc_client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "transport/frames/image_slot.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/engine_watch.h"
#include "transport/session/rpc_ends.h"
#include "transport/wait/waiter.h"

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
  return tandem::LeaseOf(place, {.seq = frame->slot_seq(),
                                 .bytes = frame->slot_bytes(),
                                 .slot = frame->slot()});
}

bool IsError(const rpc::Envelope& envelope) {
  return envelope.error_code() != 0 || (envelope.error_message() != nullptr &&
                                        envelope.error_message()->size() > 0);
}

}  // namespace

// All of a client. RpcClient has the contracts of the public calls.
class RpcClient::Core {
 public:
  Core(RpcSide* side, EnvelopeReader reader, EnvelopeWriter writer,
       const Options& options)
      : side_(side),
        place_(RpcEnds::Images(*side)),
        options_(options),
        reader_(std::move(reader)),
        waiter_(RpcEnds::WaiterOf(*side)),
        writer_(std::move(writer)) {}

  absl::StatusOr<RpcMessage> Call(PackedCall call, Deadline deadline);
  absl::StatusOr<uint64_t> Open(PackedCall call);
  absl::StatusOr<std::optional<RpcMessage>> Next(uint64_t stream,
                                                 Deadline deadline);
  uint64_t Dropped(uint64_t stream) const;
  uint64_t Unclaimed() const;
  void Close(uint64_t stream);
  void End();

 private:
  struct Stream {
    std::deque<RpcMessage> items;
    size_t bytes = 0;  // of items
    uint64_t dropped_by_engine = 0;
    uint64_t dropped_here = 0;
    bool over = false;
    absl::Status error;  // of its last message
  };
  using Lock = std::unique_lock<std::mutex>;

  bool HasRoom() const;
  absl::StatusOr<uint64_t> Post(PackedCall* call);
  void WriteOn();
  template <typename Ready>
  absl::Status Await(Lock& lock, Ready ready, Deadline deadline);
  template <typename Ready>
  absl::Status WaitFor(Lock& lock, Ready& ready, Deadline deadline);
  RpcMessage Message() const;
  void TakeAll(EnvelopeReader::Got first);
  void Take(EnvelopeReader::Got got);
  void TakeDropped(uint64_t id);
  void TakeEnvelope(const rpc::Envelope& envelope);
  void DropEnvelope(const rpc::Envelope& envelope);
  absl::Status Ended(ErrorCode code) const;

  RpcSide* const side_;
  const ImagePlace place_;
  const Options options_;
  const uint32_t born_in_ = ForkCount();  // of the owner

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  // Guarded by mutex_. Exception: while reading_, the reader and the waiter
  // belong to the reading thread.
  EnvelopeReader reader_;
  Waiter waiter_;
  bool reading_ = false;
  EnvelopeWriter writer_;
  int waiting_ = 0;  // threads in Await
  uint64_t last_id_ = 0;
  uint64_t unclaimed_ = 0;
  // Waiting calls, and their answers.
  std::map<uint64_t, std::optional<absl::StatusOr<RpcMessage>>> calls_;
  std::map<uint64_t, Stream> streams_;
  std::deque<uint64_t> cancelled_;   // cancellations not sent yet
  ErrorCode lost_ = ErrorCode::kOk;  // the reason for the session's end
};

absl::StatusOr<RpcMessage> RpcClient::Core::Call(PackedCall call,
                                                 Deadline deadline) {
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

absl::StatusOr<uint64_t> RpcClient::Core::Open(PackedCall call) {
  if (ForkCount() != born_in_) return Ended(ErrorCode::kForkedChild);
  const Lock lock(mutex_);
  WriteOn();
  if (!HasRoom()) return Ended(ErrorCode::kRingFull);
  absl::StatusOr<uint64_t> id = Post(&call);
  if (id.ok()) streams_[*id];
  return id;
}

absl::StatusOr<std::optional<RpcMessage>> RpcClient::Core::Next(
    uint64_t stream, Deadline deadline) {
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

uint64_t RpcClient::Core::Dropped(uint64_t stream) const {
  const Lock lock(mutex_);
  const auto it = streams_.find(stream);
  return it == streams_.end()
             ? 0
             : it->second.dropped_by_engine + it->second.dropped_here;
}

uint64_t RpcClient::Core::Unclaimed() const {
  const Lock lock(mutex_);
  return unclaimed_;
}

void RpcClient::Core::Close(uint64_t stream) {
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
bool RpcClient::Core::HasRoom() const {
  return writer_.queued_bytes() < kUnreadBytes;
}

// Gives the call an id and returns it. Sends as much as the ring has room for.
absl::StatusOr<uint64_t> RpcClient::Core::Post(PackedCall* call) {
  if (lost_ != ErrorCode::kOk) return Ended(lost_);
  const uint64_t id = ++last_id_;
  call->SetCorrelationId(id);
  const ErrorCode code = writer_.Post(call->bytes(), id);
  RpcEnds::Announce(side_);
  if (code == ErrorCode::kBrokenPeer) return Ended(lost_ = code);
  if (code == ErrorCode::kMessageTooLarge) return Ended(code);
  return id;
}

// Sends waiting messages while there is room: first the queue, then
// cancellations.
void RpcClient::Core::WriteOn() {
  if (lost_ != ErrorCode::kOk) return;
  const size_t waiting = writer_.queued_bytes();
  ErrorCode code = writer_.Pump();
  if (writer_.queued_bytes() != waiting) RpcEnds::Announce(side_);
  while (code != ErrorCode::kBrokenPeer && !cancelled_.empty() && HasRoom()) {
    rpc::CancelStreamRequestT request;
    request.correlation_id = cancelled_.front();
    cancelled_.pop_front();
    rpc::EnvelopeT cancel;
    cancel.method = rpc::MethodId::CancelStream;
    cancel.correlation_id = ++last_id_;  // no caller waits for its answer
    cancel.payload.Set(std::move(request));
    code = writer_.Post(cancel);
    RpcEnds::Announce(side_);
  }
  if (code == ErrorCode::kBrokenPeer) lost_ = code;
}

void RpcClient::Core::End() {
  if (ForkCount() != born_in_) return;
  Lock lock(mutex_);
  if (lost_ == ErrorCode::kOk) lost_ = ErrorCode::kClientClosed;
  arrived_.notify_all();
  while (waiting_ != 0) arrived_.wait_for(lock, std::chrono::hours(1));
}

// Blocks until `ready()`, which is called under the lock.
template <typename Ready>
absl::Status RpcClient::Core::Await(Lock& lock, Ready ready,
                                    Deadline deadline) {
  ++waiting_;
  absl::Status status = WaitFor(lock, ready, deadline);
  if (--waiting_ == 0) arrived_.notify_all();  // End may wait for it
  return status;
}

template <typename Ready>
absl::Status RpcClient::Core::WaitFor(Lock& lock, Ready& ready,
                                      Deadline deadline) {
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

// Returns a copy of the reader's envelope.
RpcMessage RpcClient::Core::Message() const {
  const auto words = reader_.envelope_words();
  return {{words.begin(), words.end()}, LeaseOf(reader_.envelope(), place_)};
}

// Handles the reader's result, and further messages while there is time.
void RpcClient::Core::TakeAll(EnvelopeReader::Got first) {
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
void RpcClient::Core::Take(EnvelopeReader::Got got) {
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

void RpcClient::Core::TakeDropped(uint64_t id) {
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

void RpcClient::Core::DropEnvelope(const rpc::Envelope& envelope) {
  ++unclaimed_;
  const ImageLease unused = LeaseOf(envelope, place_);  // its end releases it
}

void RpcClient::Core::TakeEnvelope(const rpc::Envelope& envelope) {
  const uint64_t id = envelope.correlation_id();
  if (const auto call = calls_.find(id); call != calls_.end()) {
    if (call->second.has_value()) {  // the first answer counts
      DropEnvelope(envelope);
      return;
    }
    if (IsError(envelope)) {
      call->second = ErrorOf(envelope);
    } else {
      call->second = Message();
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
  const RpcMessage& item = stream.items.emplace_back(Message());
  stream.bytes += item.bytes();
  while (stream.items.size() > 1 &&
         (stream.items.size() > options_.stream_items ||
          stream.bytes > options_.stream_bytes)) {
    stream.bytes -= stream.items.front().bytes();
    stream.items.pop_front();
    ++stream.dropped_here;
  }
}

absl::Status RpcClient::Core::Ended(ErrorCode code) const {
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
          code,
          absl::StrCat("region '", side_->name(),
                       "': expected a request whose envelope has at most ",
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

absl::StatusOr<std::unique_ptr<RpcClient>> RpcClient::Create(
    RpcSide* side, const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(RingReader reader, RpcEnds::Reader(side));
  TANDEM_ASSIGN_OR_RETURN(RingWriter writer, RpcEnds::Writer(side));
  return std::unique_ptr<RpcClient>(new RpcClient(
      std::make_unique<Core>(side, EnvelopeReader(std::move(reader), {}),
                             EnvelopeWriter(std::move(writer)), options)));
}

RpcClient::RpcClient(std::unique_ptr<Core> core) : core_(std::move(core)) {}
RpcClient::~RpcClient() = default;

absl::StatusOr<RpcMessage> RpcClient::Call(PackedCall call, Deadline deadline) {
  return core_->Call(std::move(call), deadline);
}
absl::StatusOr<uint64_t> RpcClient::Open(PackedCall call) {
  return core_->Open(std::move(call));
}
absl::StatusOr<std::optional<RpcMessage>> RpcClient::Next(uint64_t stream,
                                                          Deadline deadline) {
  return core_->Next(stream, deadline);
}
uint64_t RpcClient::Dropped(uint64_t stream) const {
  return core_->Dropped(stream);
}
uint64_t RpcClient::Unclaimed() const { return core_->Unclaimed(); }
void RpcClient::Close(uint64_t stream) { core_->Close(stream); }
void RpcClient::End() { core_->End(); }

}  // namespace tandem

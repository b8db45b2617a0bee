// RpcClient: a client's calls of its engine, and its streams.
//
// Data flow: a request -> Envelope -> ring -> the engine's handler -> ring ->
// the thread that waits for that correlation id.
// Ownership: one for a session. Its threads share it, also while one of them
// steps. The side of Create, a client's or an attendant's, must outlive it.
//
//   absl::StatusOr<std::unique_ptr<RpcClient>> client =
//       RpcClient::Create(&client_side, {});
//   rpc::EnvelopeT call;
//   call.method = rpc::MethodId::GetSceneInfo;
//   call.payload.Set(rpc::GetSceneInfoRequestT());
//   absl::StatusOr<RpcMessage> answer =
//       (*client)->Call(call, Deadline::After(1));
//   answer->envelope().payload_as_GetSceneInfoResponse()->entity_count();
//
// One of the waiting threads reads the ring for all. The others sleep until it
// has a message for them, or until it stops waiting.

#ifndef TANDEM_TRANSPORT_RPC_RPC_CLIENT_H_
#define TANDEM_TRANSPORT_RPC_RPC_CLIENT_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/frames/image_slot.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/rpc/packed_call.h"
#include "transport/session/open_region.h"
#include "transport/session/rpc_side.h"
#include "transport/wait/waiter.h"

namespace tandem {

// A verified envelope and its bytes, and the image that it announces in one of
// the caller's slots. The end of the message releases the image.
class RpcMessage {
 public:
  // A copy of the reader's envelope. `place`: the caller's slots.
  RpcMessage(const EnvelopeReader& reader, const ImagePlace& place);

  const rpc::Envelope& envelope() const {
    return *rpc::GetEnvelope(words_.data());
  }
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }
  const void* data() const { return words_.data(); }
  // Returns the image, once. Empty: it is in the envelope, or there is none, or
  // the engine has sent an invalid notice.
  ImageLease TakeImage() { return std::move(image_); }

 private:
  std::vector<uint64_t> words_;  // FlatBuffers are aligned
  ImageLease image_;
};

// Thread-safe. In a forked child every call returns kForkedChild.
class RpcClient {
 public:
  struct Options {
    // The maximum of a stream's items that Next has not taken. Beyond it the
    // oldest are dropped. The newest is kept, with any size.
    size_t stream_items = 64;
    size_t stream_bytes = size_t{64} << 20;
    // The waiting thread calls this repeatedly; true ends the call with
    // kInterrupted.
    InterruptHook interrupted = nullptr;
  };

  // The session of `side` must outlive the client. kBrokenPeer: the positions
  // of the rings are invalid.
  static absl::StatusOr<std::unique_ptr<RpcClient>> Create(
      RpcSide* side, const Options& options);
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  // Sends the call with a new correlation id, and blocks until the answer.
  // Errors:
  //  - the engine's, with its code and text;
  //  - kEngineFailed: the answer cannot be read for another reason than its
  //    size;
  //  - kStepTimeout, kPeerGone, kBrokenPeer, kInterrupted;
  //  - kMessageTooLarge: the request is larger than the rings carry, and was
  //    not sent; or the answer is.
  //
  // After a timeout or interrupt the call is cancelled as by Close; a late
  // answer is dropped.
  absl::StatusOr<RpcMessage> Call(PackedCall call, Deadline deadline);

  // Opens a stream and returns its id, for the three methods below. Does not
  // wait. kRingFull while the engine has too many unread bytes.
  absl::StatusOr<uint64_t> Open(PackedCall call);
  // Blocks until the stream's next item, and returns it; nullopt: the stream
  // has ended. Errors as Call's; an engine's error is the stream's last
  // message. Deadline::Now() polls once.
  absl::StatusOr<std::optional<RpcMessage>> Next(uint64_t stream,
                                                 Deadline deadline);
  // The number of items that the engine or this client has dropped, since the
  // caller did not take them in time.
  uint64_t Dropped(uint64_t stream) const;
  // The number of answers and items without a waiting caller: after their
  // deadline, after their stream's Close, or duplicates.
  uint64_t Unclaimed() const;
  // Ends and removes the stream. Does not wait: if the ring is full, a later
  // call sends the cancellation. A second call has no effect.
  void Close(uint64_t stream);

  // Ends the client before its session. Waiting and later calls return
  // kClientClosed. Blocks until no thread waits, at most 20 ms. A second call
  // has no effect.
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

  RpcClient(RpcSide* side, EnvelopeReader reader, EnvelopeWriter writer,
            const Options& options);

  bool HasRoom() const;
  absl::StatusOr<uint64_t> Post(PackedCall* call);
  void WriteOn();
  template <typename Ready>
  absl::Status Await(Lock& lock, Ready ready, Deadline deadline);
  template <typename Ready>
  absl::Status WaitFor(Lock& lock, Ready& ready, Deadline deadline);
  void TakeAll(EnvelopeReader::Got first);
  void Take(EnvelopeReader::Got got);
  void TakeDropped(uint64_t id);
  void TakeEnvelope(const rpc::Envelope& envelope);
  void DropEnvelope(const rpc::Envelope& envelope);
  absl::Status Ended(ErrorCode code) const;

  RpcSide* const side_;
  const ImagePlace place_;
  const Options options_;
  const uint32_t born_in_;

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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_RPC_CLIENT_H_

// RpcClient: a client's calls to its engine, and the streams that it opens.
//
// Data flow: a request -> Envelope -> ring -> the engine's handler -> ring ->
// the thread that waits for that correlation id.
// Ownership: one for a session; its threads share it, also while one of them
// steps. The ClientSide that it was made of outlives it.
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
// One of the waiting threads reads the ring for all: the others sleep until
// it has something for them, or stops waiting.

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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/clock.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/rpc/packed_call.h"
#include "transport/session/client_side.h"
#include "transport/wait/waiter.h"

namespace tandem {

// A verified envelope and its bytes.
class RpcMessage {
 public:
  // A copy of the reader's envelope.
  explicit RpcMessage(const EnvelopeReader& reader);

  const rpc::Envelope& envelope() const {
    return *rpc::GetEnvelope(words_.data());
  }
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;  // FlatBuffers are aligned
};

// Thread-safe. In a forked child every call gives kForkedChild.
class RpcClient {
 public:
  struct Options {
    // Items of a stream that wait to be taken; beyond it the oldest are lost.
    // The newest is kept, however large.
    size_t stream_items = 64;
    size_t stream_bytes = size_t{64} << 20;
    // Called now and then while a call waits; true ends it with kInterrupted.
    InterruptHook interrupted = nullptr;
  };

  // `side` outlives it, and has no Reconnect meanwhile. kBrokenPeer: the engine
  // has scribbled over the rings.
  static absl::StatusOr<std::unique_ptr<RpcClient>> Create(
      ClientSide* side, const Options& options);
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  // Calls, and waits for the answer; the correlation id is chosen here. Errors:
  // the engine's, with its code and text; kEngineFailed, for an answer that
  // cannot be read; kStepTimeout, kPeerGone, kBrokenPeer, kInterrupted;
  // kMessageTooLarge for the rings. A call that is given up is cancelled, as
  // Close does it; an answer that comes nevertheless is dropped.
  absl::StatusOr<RpcMessage> Call(PackedCall call, Deadline deadline);

  // Opens a stream and returns its id, for the three below. Doesn't wait:
  // kRingFull while the engine leaves much unread.
  absl::StatusOr<uint64_t> Open(PackedCall call);
  // The stream's next item; nothing: it is over. Errors as Call's; the engine's
  // is the stream's last word. Deadline::Now() polls once.
  absl::StatusOr<std::optional<RpcMessage>> Next(uint64_t stream,
                                                 Deadline deadline);
  // Items lost so far, by the engine or here, as they were not taken in time.
  uint64_t Dropped(uint64_t stream) const;
  // Answers and items without a waiting caller: they came after their deadline,
  // after their stream's Close, or twice.
  uint64_t Unclaimed() const;
  // Ends and removes the stream. Does not wait: if the ring is full, a later
  // call sends the cancellation. Idempotent.
  void Close(uint64_t stream);

  // Ends the client before its session: calls that wait and all later ones
  // return kClientClosed. Returns when no thread waits any more, which takes up
  // to 20 ms. Safe twice.
  void End();

 private:
  struct Stream {
    std::deque<RpcMessage> items;
    size_t bytes = 0;  // of items
    uint64_t dropped_by_engine = 0;
    uint64_t dropped_here = 0;
    bool over = false;
    absl::Status error;  // its last word
  };
  class Watch;
  using Lock = std::unique_lock<std::mutex>;

  RpcClient(ClientSide* side, EnvelopeReader reader, EnvelopeWriter writer,
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
  absl::Status Ended(ErrorCode code) const;

  ClientSide* const side_;
  const Options options_;
  const uint32_t born_in_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  // Guarded by mutex_, but for the reader and the waiter while reading_: then
  // they are the reading thread's alone.
  EnvelopeReader reader_;
  Waiter waiter_;
  bool reading_ = false;
  EnvelopeWriter writer_;
  int waiting_ = 0;  // threads in Await
  uint64_t last_id_ = 0;
  uint64_t unclaimed_ = 0;
  // Calls that wait, and what came for them.
  std::map<uint64_t, std::optional<absl::StatusOr<RpcMessage>>> calls_;
  std::map<uint64_t, Stream> streams_;
  std::deque<uint64_t> cancelled_;   // not sent to the engine yet
  ErrorCode lost_ = ErrorCode::kOk;  // why nothing comes any more
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_RPC_CLIENT_H_

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

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/os/fork_guard.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/rpc_side.h"
#include "transport/wait_strategy.h"

namespace tandem {

// A verified envelope and its bytes, and the image that it announces in one of
// the caller's slots. The end of the message releases the image.
class RpcMessage {
 public:
  RpcMessage(std::vector<uint64_t> words, ImageLease image)
      : words_(std::move(words)), image_(std::move(image)) {}

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
  ~RpcClient();

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
  class Core;  // rpc_client.cc

  explicit RpcClient(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

// The RpcClient of a side's current session, made by the first call. The owner
// of the side has one beside it. Thread-safe.
//
//   RpcSession rpcs(&client_side, {});
//   absl::StatusOr<std::shared_ptr<RpcClient>> client = rpcs.Client();
//   rpcs.End();    // before the side closes or reconnects
//   rpcs.Begin();  // after it has reconnected
//
// States: with a session, at first; without one, after End.
class RpcSession {
 public:
  // `side` must outlive this object and its clients.
  RpcSession(RpcSide* side, const RpcClient::Options& options)
      : side_(side), options_(options) {}
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
  const uint32_t born_in_ = ForkCount();  // of the owner
  Mutex mutex_;
  bool has_session_ ABSL_GUARDED_BY(mutex_) = true;
  std::shared_ptr<RpcClient> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

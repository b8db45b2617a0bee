// RelayStream: gRPC's reactor for a stream of items. EngineItems: those of an
// engine's stream.
//
// Data flow: a source of items -> a thread of Gateway::streams, which keeps
// only the newest that gRPC has not taken -> gRPC -> the program. So a slow
// program loses items; nothing waits for it. The number of lost items is in the
// stream's trailing metadata, "tandem-lost-items".
// Ownership: deletes itself after gRPC and its thread have finished with it.
//
//   return RelayStream<pb::TelemetryFrame>::Start(
//       gateway, context, EngineItems<pb::TelemetryFrame>(...));

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/gateway/gateway.h"
#include "engine_adapter/gateway/grpc_errors.h"
#include "engine_adapter/gateway/work_queue.h"
#include "schema/layout/error_codes.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/packed_call.h"
#include "transport/rpc/rpc_client.h"

namespace tandem::gateway {

// The items of an engine's stream. Movable.
template <typename Item>
class EngineItems {
 public:
  // Converts an engine's item.
  using Take = std::function<absl::Status(RpcMessage* from, Item* to)>;

  // Opens the stream by `call` at the first item.
  EngineItems(Gateway* gateway, PackedCall call, Take take)
      : gateway_(gateway), call_(std::move(call)), take_(std::move(take)) {}
  EngineItems(EngineItems&&) = default;
  ~EngineItems() {
    if (client_ != nullptr) client_->Close(id_);
  }

  // Blocks until an item; nullopt: the stream has ended. kStepTimeout: no item
  // before the deadline; the next call goes on.
  absl::StatusOr<std::optional<Item>> Next(Deadline deadline) {
    if (client_ == nullptr) {
      TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client,
                              gateway_->link.Client());
      TANDEM_ASSIGN_OR_RETURN(id_, client->Open(std::move(call_)));
      client_ = client;
    }
    TANDEM_ASSIGN_OR_RETURN(std::optional<RpcMessage> next,
                            client_->Next(id_, deadline));
    if (!next.has_value()) return std::optional<Item>();
    std::optional<Item> item(std::in_place);
    TANDEM_RETURN_IF_ERROR(take_(&*next, &*item));
    return item;
  }

 private:
  Gateway* gateway_;
  PackedCall call_;
  Take take_;
  std::shared_ptr<RpcClient> client_;  // nullptr: not open
  uint64_t id_ = 0;
};

template <typename Item>
class RelayStream final : public grpc::ServerWriteReactor<Item> {
 public:
  // `items` has the function Next of EngineItems. RESOURCE_EXHAUSTED: too many
  // streams.
  template <typename Items>
  static RelayStream* Start(Gateway* gateway,
                            grpc::CallbackServerContext* context, Items items) {
    auto* const stream = new RelayStream(context);
    // std::function copies.
    auto shared = std::make_shared<Items>(std::move(items));
    const bool added = gateway->streams.Add([stream, shared]() mutable {
      const absl::Status status = stream->Pass(shared.get());
      shared = nullptr;
      stream->End(status);
    });
    if (!added) {
      stream->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                      absl::StrCat("expected at most ", Gateway::kMostStreams,
                                   " open streams, found more; next: end "
                                   "some")});
    }
    return stream;
  }

 private:
  // How long a stream without items takes to notice its cancellation.
  static constexpr double kLookSecs = 0.1;

  explicit RelayStream(grpc::CallbackServerContext* context)
      : context_(context) {}

  // Passes items on until the stream ends, or is cancelled.
  template <typename Items>
  absl::Status Pass(Items* items) {
    while (!IsCancelled()) {
      absl::StatusOr<std::optional<Item>> next =
          items->Next(Deadline::After(kLookSecs));
      if (CodeOf(next.status()) == ErrorCode::kStepTimeout) continue;
      if (!next.ok()) return next.status();
      if (!next->has_value()) return absl::OkStatus();
      Offer(**std::move(next));
    }
    return absl::CancelledError("the program has cancelled the stream");
  }

  bool IsCancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  void Offer(Item item) {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return;
    if (!writing_) {
      writing_ = true;
      current_ = std::move(item);
      this->StartWrite(&current_);
      return;
    }
    if (newest_.has_value()) ++lost_;
    newest_ = std::move(item);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (ok && !cancelled_ && newest_.has_value()) {
      current_ = *std::move(newest_);
      newest_.reset();
      this->StartWrite(&current_);
      return;
    }
    writing_ = false;
    cancelled_ = cancelled_ || !ok;
    written_.notify_one();
  }

  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }

  // Called at the end of the thread's work: OnDone may follow at once.
  void End(const absl::Status& status) {
    {
      std::unique_lock lock(mutex_);
      Await(&written_, lock, [this] { return !writing_; });
      context_->AddTrailingMetadata("tandem-lost-items", absl::StrCat(lost_));
    }
    this->Finish(ToGrpc(status));
  }

  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  Item current_;  // gRPC reads it while writing_
  std::mutex mutex_;
  std::condition_variable written_;
  // Guarded by mutex_.
  std::optional<Item> newest_;
  bool writing_ = false;
  bool cancelled_ = false;
  uint64_t lost_ = 0;
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_

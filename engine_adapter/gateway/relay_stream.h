// RelayStream: gRPC's reactor for a stream of an engine's items.
//
// Data flow: the engine's items -> a thread of Gateway::streams, which keeps
// only the newest that gRPC has not taken -> gRPC -> the program. So a slow
// program loses items; nothing waits for it. The number of lost items is in the
// stream's trailing metadata, "tandem-lost-items".
// Ownership: deletes itself after gRPC and its thread have finished with it.
//
//   return RelayStream<pb::TelemetryFrame>::Start(gateway, context, open,
//   take);

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
#include "schema/layout/error_codes.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/packed_call.h"
#include "transport/rpc/rpc_client.h"

namespace tandem::gateway {

template <typename Item>
class RelayStream final : public grpc::ServerWriteReactor<Item> {
 public:
  // Converts an engine's item.
  using Take = std::function<absl::Status(RpcMessage* from, Item* to)>;

  // Opens the engine's stream by `call`. RESOURCE_EXHAUSTED: too many streams.
  static RelayStream* Start(Gateway* gateway,
                            grpc::CallbackServerContext* context,
                            PackedCall call, Take take) {
    auto* const stream = new RelayStream(context, std::move(take));
    auto shared = std::make_shared<PackedCall>(std::move(call));
    const bool added = gateway->streams.Add([gateway, stream, shared] {
      stream->End(stream->Run(gateway, std::move(*shared)));
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

  RelayStream(grpc::CallbackServerContext* context, Take take)
      : context_(context), take_(std::move(take)) {}

  absl::Status Run(Gateway* gateway, PackedCall call) {
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client,
                            gateway->link.Client());
    TANDEM_ASSIGN_OR_RETURN(const uint64_t id, client->Open(std::move(call)));
    const absl::Status status = Pass(client.get(), id);
    client->Close(id);
    return status;
  }

  // Passes items on until the stream ends, or is cancelled.
  absl::Status Pass(RpcClient* client, uint64_t id) {
    while (!IsCancelled()) {
      absl::StatusOr<std::optional<RpcMessage>> next =
          client->Next(id, Deadline::After(kLookSecs));
      if (CodeOf(next.status()) == ErrorCode::kStepTimeout) continue;
      if (!next.ok()) return next.status();
      if (!next->has_value()) return absl::OkStatus();
      Item item;
      TANDEM_RETURN_IF_ERROR(take_(&**next, &item));
      Offer(std::move(item));
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
      written_.wait(lock, [this] { return !writing_; });
      context_->AddTrailingMetadata("tandem-lost-items", absl::StrCat(lost_));
    }
    this->Finish(ToGrpc(status));
  }

  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  const Take take_;
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

// RelayStream: gRPC's reactor for a stream.
//
// Data flow: items -> a thread of Gateway::streams, which keeps only the newest
// that gRPC has not taken -> gRPC -> the program. So a slow program loses
// items; nothing waits for it. The number of lost items is in the stream's
// trailing metadata, "tandem-lost-items". Ownership: deletes itself after gRPC
// and its thread have finished with it.
//
//   return RelayStream::Start(&gateway->streams, context, std::move(items));

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "engine_adapter/gateway/stream_items.h"
#include "engine_adapter/gateway/work_queue.h"

namespace tandem::gateway {

class RelayStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // Returns a stream that `threads` serves. It ends with RESOURCE_EXHAUSTED if
  // they have too many.
  static RelayStream* Start(WorkQueue* threads,
                            grpc::CallbackServerContext* context,
                            std::unique_ptr<StreamItems> items);

  // Returns a stream without items, which ends with this status.
  static RelayStream* Ended(const grpc::Status& status);

 private:
  explicit RelayStream(grpc::CallbackServerContext* context)
      : context_(context) {}

  absl::Status Pass(StreamItems* items);
  bool IsCancelled();
  void Offer(grpc::ByteBuffer item);
  void End(const absl::Status& status);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer current_;  // gRPC reads it while writing_
  std::mutex mutex_;
  std::condition_variable written_;
  // Guarded by mutex_.
  std::optional<grpc::ByteBuffer> newest_;
  bool writing_ = false;
  bool cancelled_ = false;
  uint64_t lost_ = 0;
};

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_RELAY_STREAM_H_

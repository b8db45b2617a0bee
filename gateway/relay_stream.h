// RelayStream: gRPC's reactor for a stream.
//
// Data flow: items -> a thread of StreamPlaces, which keeps only the newest
// that gRPC has not taken -> gRPC -> the program. So a slow program loses
// items; nothing waits for it. The number of lost items is in the stream's
// trailing metadata, "tandem-lost-items". Ownership: deletes itself after gRPC
// and its thread have finished with it.

#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/work_queue.h"
#include "gateway/stream_items.h"

namespace tandem::gateway {

// The threads of all streams. A cancelled stream has no place any more, though
// its thread needs up to 0.1 s to end; a new stream then waits for a thread.
struct StreamPlaces {
  StreamPlaces(size_t most_open, size_t most_waiting)
      : threads(most_open, most_waiting) {}

  std::atomic<size_t> open = 0;  // not cancelled; publishes no other data
  WorkQueue threads;
};

class RelayStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // Returns a stream with a place. It ends with RESOURCE_EXHAUSTED if none is
  // free.
  static RelayStream* Start(StreamPlaces* places,
                            grpc::CallbackServerContext* context,
                            std::unique_ptr<StreamItems> items);

  // Returns a stream without items, which ends with this status.
  static RelayStream* Ended(const grpc::Status& status);

 private:
  RelayStream(grpc::CallbackServerContext* context, StreamPlaces* places)
      : context_(context), places_(places) {}

  absl::Status Pass(StreamItems* items);
  bool IsCancelled();
  void FreePlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Offer(grpc::ByteBuffer item);
  void End(const absl::Status& status);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  Mutex mutex_;
  CondVar written_;
  // nullptr: it has no place.
  StreamPlaces* places_ ABSL_GUARDED_BY(mutex_);
  // gRPC reads it while writing_.
  grpc::ByteBuffer current_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::ByteBuffer> newest_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::gateway

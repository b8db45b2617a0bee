#include "gateway/relay_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "gateway/grpc_errors.h"
#include "gateway/message_bytes.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

// How long a stream without items takes to notice its cancellation.
constexpr double kLookSecs = 0.1;

}  // namespace

RelayStream* RelayStream::Start(StreamPlaces* places,
                                grpc::CallbackServerContext* context,
                                std::unique_ptr<StreamItems> items) {
  auto* const stream = new RelayStream(context, places);
  // relaxed: only the number counts.
  const bool has_place = places->open.fetch_add(1, std::memory_order_relaxed) <
                         places->threads.most_threads();
  // std::function copies.
  auto shared = std::shared_ptr<StreamItems>(std::move(items));
  if (!has_place || !places->threads.Add([stream, shared]() mutable {
        const absl::Status status = stream->Pass(shared.get());
        shared = nullptr;
        stream->End(status);
      })) {
    MutexLock lock(&stream->mutex_);
    stream->FreePlace();
    stream->Finish(
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         absl::StrCat("expected at most ", places->threads.most_threads(),
                      " open streams, found one more; next: cancel "
                      "one")});
  }
  return stream;
}

RelayStream* RelayStream::Ended(const grpc::Status& status) {
  auto* const stream = new RelayStream(nullptr, nullptr);
  stream->Finish(status);
  return stream;
}

// Passes items on until the stream ends, or is cancelled.
absl::Status RelayStream::Pass(StreamItems* items) {
  while (!IsCancelled()) {
    const auto next = items->Next(Deadline::After(kLookSecs));
    if (CodeOf(next.status()) == ErrorCode::kStepTimeout) continue;
    if (!next.ok()) return next.status();
    if (*next == nullptr) return absl::OkStatus();
    Offer(BytesOf(**next));
  }
  return absl::CancelledError("the program has cancelled the stream");
}

void RelayStream::FreePlace() {
  if (places_ == nullptr) return;
  // relaxed: a count; it orders nothing else.
  places_->open.fetch_sub(1, std::memory_order_relaxed);
  places_ = nullptr;
}

bool RelayStream::IsCancelled() {
  MutexLock lock(&mutex_);
  return cancelled_;
}

void RelayStream::Offer(grpc::ByteBuffer item) {
  MutexLock lock(&mutex_);
  if (cancelled_) return;
  if (!writing_) {
    writing_ = true;
    current_ = std::move(item);
    StartWrite(&current_);
    return;
  }
  if (newest_.has_value()) ++lost_;
  newest_ = std::move(item);
}

void RelayStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  if (ok && !cancelled_ && newest_.has_value()) {
    current_ = *std::move(newest_);
    newest_.reset();
    StartWrite(&current_);
    return;
  }
  writing_ = false;
  cancelled_ = cancelled_ || !ok;
  written_.Signal();
}

void RelayStream::OnCancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  FreePlace();
}

// Called at the end of the thread's work: OnDone may follow at once.
void RelayStream::End(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    while (writing_) written_.Wait(&mutex_);
    context_->AddTrailingMetadata("tandem-lost-items", absl::StrCat(lost_));
    FreePlace();
  }
  Finish(ToGrpc(status));
}

}  // namespace tandem::gateway

#include "engine_adapter/image_queue.h"

#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"
#include "engine_adapter/frame_source.h"
#include "engine_adapter/image.h"
#include "transport/frame_geometry.h"

namespace tandem {

ImageQueue::~ImageQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  news_.SignalAll();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::shared_ptr<const void>> ImageQueue::Admit(
    const ImageRequest& request) {
  if (request.width > kMaxRenderSide || request.height > kMaxRenderSide ||
      uint64_t{request.width} * request.height > kMostPixels) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("width, height: expected sides of at most ",
                     kMaxRenderSide, " and at most ", kMostPixels,
                     " pixels, found ", request.width, "x", request.height));
  }
  {
    MutexLock lock(&mutex_);
    DropUnwanted();
  }
  const size_t bytes = size_t{request.width} * request.height *
                       (request.depth ? sizeof(float) : kRgbBytes);
  // relaxed, here and below: the counts publish nothing. Only this thread
  // increases them.
  if (pending_->images.load(std::memory_order_relaxed) >= kMostAtATime ||
      pending_->bytes.load(std::memory_order_relaxed) + bytes > kMostBytes) {
    return MakeError(
        ErrorCode::kRingFull,
        absl::StrCat("images: expected at most ", kMostAtATime, " and ",
                     kMostBytes, " bytes at a time, found that ", request.width,
                     "x", request.height,
                     " more would exceed it; ask again when some have come, "
                     "or for smaller ones"));
  }
  pending_->images.fetch_add(1, std::memory_order_relaxed);  // as above
  pending_->bytes.fetch_add(bytes, std::memory_order_relaxed);
  return std::shared_ptr<const void>(
      nullptr, [counts = pending_, bytes](const void*) {
        counts->images.fetch_sub(1, std::memory_order_relaxed);  // as above
        counts->bytes.fetch_sub(bytes, std::memory_order_relaxed);
      });
}

void ImageQueue::Add(Job job) {
  {
    MutexLock lock(&mutex_);
    waiting_.push_back(std::move(job));
  }
  news_.Signal();
  if (!thread_.joinable()) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { Run(); });
  }
}

void ImageQueue::DropUnwanted() {
  std::erase_if(waiting_, [](const Job& job) { return job.wanted.expired(); });
}

void ImageQueue::Run() {
  NameThread("tandem-cameras");
  GoToBackground();
  while (std::optional<Job> job = NextJob()) {
    absl::StatusOr<Image> image = Guarded(job->render);
    job->render = nullptr;
    if (image.ok()) image->held = std::move(job->held);
    job->done(std::move(image));
  }
  std::deque<Job> left;
  {
    MutexLock lock(&mutex_);
    left.swap(waiting_);
  }
  for (Job& job : left) {
    job.render = nullptr;
    job.done(MakeError(ErrorCode::kEngineFailed,
                       "images: the engine stops, and draws no more"));
  }
  at_end_();
}

std::optional<ImageQueue::Job> ImageQueue::NextJob() {
  MutexLock lock(&mutex_);
  for (;;) {
    DropUnwanted();
    if (stopping_ || !waiting_.empty()) break;
    news_.Wait(&mutex_);
  }
  if (stopping_) return std::nullopt;
  Job job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

absl::StatusOr<Image> RenderImage(
    const ImageRequest& request,
    absl::FunctionRef<absl::Status(const FrameTile& tile)> draw) {
  const size_t row_bytes = size_t{request.width} * kRgbBytes;
  std::vector<uint8_t> rgb(row_bytes * request.height);
  const FrameTile tile = {
      .first = std::as_writable_bytes(std::span(rgb)).data(),
      .stride = row_bytes,
      .row_bytes = row_bytes,
      .rows = request.height};
  TANDEM_RETURN_IF_ERROR(draw(tile));
  return EncodeImage(std::move(rgb), request.width, request.height,
                     request.format);
}

}  // namespace tandem

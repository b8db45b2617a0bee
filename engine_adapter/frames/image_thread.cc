#include "engine_adapter/frames/image_thread.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/os/blocked_signals.h"
#include "base/os/machine.h"
#include "schema/layout/lrbc.h"

namespace tandem {
namespace {

absl::Status AboutImages(const absl::Status& status) {
  const bool names_its_flag = CodeOf(status) == ErrorCode::kInvalidArgument;
  if (status.ok() || names_its_flag) return status;
  return MakeError(CodeOf(status), absl::StrCat("images: ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageThread>> ImageThread::Create(
    FrameSource* source, const ImageOptions& options, uint32_t num_envs,
    std::span<uint8_t> images, std::function<bool()> stopping) {
  FrameOptions frames = {.width = options.width,
                         .height = options.height,
                         .effects = options.effects,
                         .camera = FrameCamera::kFixed,
                         .model_cameras = options.cameras};
  frames.envs.resize(num_envs);
  std::iota(frames.envs.begin(), frames.envs.end(), 0U);
  TANDEM_RETURN_IF_ERROR(AboutImages(source->Prepare(frames)));
  std::unique_ptr<ImageThread> thread(
      new ImageThread(source, options, images, std::move(stopping)));
  TANDEM_RETURN_IF_ERROR(thread->AwaitTurn());
  return thread;
}

ImageThread::ImageThread(FrameSource* source, const ImageOptions& options,
                         std::span<uint8_t> images,
                         std::function<bool()> stopping)
    : source_(source),
      row_bytes_(options.width * options.cameras.size() * kRgbBytes),
      rows_(options.height),
      images_(std::as_writable_bytes(images)),
      stopping_(std::move(stopping)) {
  chosen_.reserve(images.size() / (row_bytes_ * rows_));
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
}

ImageThread::~ImageThread() {
  GiveTurn(Turn::kEnds);
  thread_.join();
}

absl::Status ImageThread::DrawAll() {
  chosen_.resize(images_.size() / (row_bytes_ * rows_));
  std::iota(chosen_.begin(), chosen_.end(), 0U);
  return Draw(images_);
}

absl::Status ImageThread::DrawInto(std::span<const uint32_t> envs,
                                   std::span<uint8_t> images) {
  chosen_.assign(envs.begin(), envs.end());
  return Draw(std::as_writable_bytes(images));
}

absl::Status ImageThread::DrawFlagged(std::span<const uint8_t> flags) {
  if (!status_.ok()) return DrawAll();
  chosen_.clear();
  for (uint32_t env = 0; env < flags.size(); ++env) {
    if (IsReset(flags[env])) chosen_.push_back(env);
  }
  return chosen_.empty() ? absl::OkStatus() : Draw(images_);
}

absl::Status ImageThread::Draw(std::span<std::byte> target) {
  target_ = target;
  absl::Status captured = Guarded([this] {
    for (const uint32_t env : chosen_) source_->Capture(env);
    return absl::OkStatus();
  });
  if (!captured.ok()) {
    status_ = std::move(captured);
    return AboutImages(status_);
  }
  GiveTurn(Turn::kDraws);
  return AwaitTurn();
}

void ImageThread::GiveTurn(Turn turn) {
  {
    MutexLock lock(&mutex_);
    turn_ = turn;
  }
  turned_.SignalAll();
}

// Returns the render thread's result.
absl::Status ImageThread::AwaitTurn() {
  MutexLock lock(&mutex_);
  while (turn_ != Turn::kSteps) turned_.Wait(&mutex_);
  return AboutImages(status_);
}

void ImageThread::Run() {
  NameThread("tandem-images");
  status_ = Guarded([this] { return source_->Start(); });
  const bool started = status_.ok();
  GiveTurn(Turn::kSteps);
  for (;;) {
    {
      MutexLock lock(&mutex_);
      while (turn_ == Turn::kSteps) turned_.Wait(&mutex_);
      if (turn_ == Turn::kEnds) break;
    }
    if (started) status_ = Guarded([this] { return DrawChosen(); });
    GiveTurn(Turn::kSteps);
  }
  source_->Stop();
}

absl::Status ImageThread::DrawChosen() {
  for (const uint32_t env : chosen_) {
    if (stopping_ && stopping_()) {
      return MakeError(ErrorCode::kInterrupted,
                       "expected to render every environment, found a stop "
                       "request; start the engine again");
    }
    const FrameTile tile = {.first = target_.data() + env * row_bytes_ * rows_,
                            .stride = row_bytes_,
                            .row_bytes = row_bytes_,
                            .rows = rows_};
    TANDEM_RETURN_IF_ERROR(source_->Draw(env, tile));
  }
  return absl::OkStatus();
}

}  // namespace tandem

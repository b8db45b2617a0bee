#include "viz/web/run_feed.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {

bool RunFeed::Poll(int64_t now_ns) {
  if (const std::shared_ptr<SceneWatch> scene = scene_.lock()) {
    scene->Poll(now_ns);
  }
  if (pictures_.expired() && recorder_ == nullptr) {
    watch_.Detach();
    return false;
  }
  if (!watch_.Poll(now_ns)) return false;
  encoded_.clear();
  tape_.Record(watch_, now_ns);
  if (recorder_ != nullptr) recorder_->Add(watch_.frame(), now_ns);
  return true;
}

std::shared_ptr<void> RunFeed::WatchPictures() {
  std::shared_ptr<void> watched = pictures_.lock();
  if (watched == nullptr) pictures_ = watched = std::make_shared<bool>();
  return watched;
}

std::shared_ptr<SceneWatch> RunFeed::Scene(WorkThread* thread) {
  std::shared_ptr<SceneWatch> scene = scene_.lock();
  if (scene == nullptr) {
    scene_ = scene = std::make_shared<SceneWatch>(run_, thread);
  }
  return scene;
}

void RunFeed::ShareTapeWith(size_t feeds) {
  tape_.ShareWith(feeds);
  if (const std::shared_ptr<SceneWatch> scene = scene_.lock()) {
    scene->ShareTapeWith(feeds);
  }
}

absl::Status RunFeed::StartRecording(const std::string& path) {
  if (recorder_ != nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("expected a run that is not recorded yet, "
                                  "found the recording ",
                                  recorder_->path()));
  }
  TANDEM_ASSIGN_OR_RETURN(recorder_, Mp4Recorder::Start(path));
  error_.clear();
  return absl::OkStatus();
}

std::shared_ptr<const Picture> RunFeed::Encode(const PictureQuality& quality,
                                               uint32_t wanted_width) {
  const Frame& frame = watch_.frame();
  if (frame.number == 0) return nullptr;
  const PictureOptions options = {
      .divisor =
          quality.divisor * DivisorFor(frame.width, frame.height, wanted_width),
      .quality = quality.jpeg};
  std::shared_ptr<const Picture>& kept =
      encoded_[{options.divisor, options.quality}];
  if (kept == nullptr) {
    absl::StatusOr<Picture> picture = EncodePicture(frame, options);
    if (!picture.ok()) return nullptr;
    kept = std::make_shared<const Picture>(*std::move(picture));
  }
  return kept;
}

std::shared_ptr<const Picture> RunFeed::EncodeLossless() const {
  const Frame& frame = watch_.frame();
  if (frame.number == 0) return nullptr;
  absl::StatusOr<Picture> picture = EncodePicture(
      frame,
      {.divisor = DivisorFor(frame.width, frame.height, 0), .lossless = true});
  if (!picture.ok()) return nullptr;
  return std::make_shared<const Picture>(*std::move(picture));
}

}  // namespace tandem

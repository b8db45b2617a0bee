#include "viz/core/frame_tape.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem {

void FrameTape::Record(const FrameWatch& watch, int64_t now_ns) {
  if (!empty() && now_ns - end_ns() < limits_.least_gap_ns) return;
  const Frame& frame = watch.frame();
  absl::StatusOr<Picture> picture =
      EncodePicture(frame, {.divisor = DivisorFor(frame.width, frame.height, 0),
                            .quality = kQuality});
  if (!picture.ok()) return;
  Keep({.at_ns = now_ns,
        .number = frame.number,
        .metadata = watch.metadata(),
        .metrics = frame.metrics,
        .picture = *std::move(picture)});
}

void FrameTape::Keep(KeptFrame frame) {
  bytes_ += frame.picture.file.size();
  frames_.push_back(std::make_shared<const KeptFrame>(std::move(frame)));
  RemoveBeyondLimits();
}

void FrameTape::ShareWith(size_t tapes) {
  limits_.bytes =
      std::min(Limits().bytes, kBytesOfAll / std::max<size_t>(1, tapes));
  RemoveBeyondLimits();
}

std::shared_ptr<const KeptFrame> FrameTape::At(int64_t at_ns) const {
  if (empty()) return nullptr;
  const auto after = std::ranges::upper_bound(
      frames_, at_ns, {}, [](const auto& frame) { return frame->at_ns; });
  return after == frames_.begin() ? frames_.front() : *std::prev(after);
}

void FrameTape::RemoveBeyondLimits() {
  while (frames_.size() > 1 &&
         (bytes_ > limits_.bytes || end_ns() - begin_ns() > limits_.span_ns)) {
    bytes_ -= frames_.front()->picture.file.size();
    frames_.pop_front();
  }
}

}  // namespace tandem

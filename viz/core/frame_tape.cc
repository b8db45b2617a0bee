#include "viz/core/frame_tape.h"

#include <utility>

#include "absl/status/statusor.h"

namespace tandem {

void FrameTape::Record(const FrameWatch& watch, int64_t now_ns) {
  if (HasYoung(now_ns)) return;
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

}  // namespace tandem

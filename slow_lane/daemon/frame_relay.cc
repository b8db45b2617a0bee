#include "slow_lane/daemon/frame_relay.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "slow_lane/daemon/jpeg_decoder.h"
#include "slow_lane/runs/limits.h"
#include "slow_lane/runs/shared_memory.h"
#include "transport/frame_geometry.h"
#include "transport/region.h"

namespace tandem::slow_lane {
namespace {

constexpr uint32_t kSlots = 3;
constexpr absl::Duration kCheckPause = absl::Seconds(1);

FrameGeometry GeometryOf(const RgbImage& image) {
  return {.width = image.width,
          .height = image.height,
          .channels = 3,
          .capacity = kSlots,
          .metadata_bytes = kMaxRelayedMetadata};
}

}  // namespace

FrameRelay::FrameRelay(RunSupervisor* runs) : runs_(runs), loop_("frames") {
  RemoveDeadRegions();
}

absl::StatusOr<v1::RelayFrameResponse> FrameRelay::Show(
    const v1::RelayFrameRequest& request) {
  v1::RelayFrameResponse response;
  // The run's own ring is here, too.
  if (!request.shared_memory().empty() &&
      request.shared_memory() == SharedMemoryId()) {
    return response;
  }
  auto ring = rings_.find(request.run_id());
  if (request.has_frame()) {
    const v1::RelayedFrame& frame = request.frame();
    if (frame.metadata().size() > kMaxRelayedMetadata) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("metadata: expected at most ", kMaxRelayedMetadata,
                       " bytes, found ", frame.metadata().size()));
    }
    TANDEM_ASSIGN_OR_RETURN(const RgbImage image,
                            DecodeJpeg(frame.jpeg(), kMaxRelayedPixels));
    if (ring != rings_.end() &&
        ring->second.writer().geometry() != GeometryOf(image)) {
      rings_.erase(ring);
      ring = rings_.end();
    }
    if (ring == rings_.end()) {
      TANDEM_ASSIGN_OR_RETURN(
          OwnedFrameSegment segment,
          OwnedFrameSegment::Create(request.run_id(), GeometryOf(image)));
      ring = rings_.emplace(request.run_id(), std::move(segment)).first;
      if (!std::exchange(checking_, true)) {
        loop_.After(kCheckPause, [this] { CheckRings(); });
      }
    }
    ring->second.writer().Publish(image.pixels,
                                  {.last_reward = frame.last_reward(),
                                   .rolling_return = frame.rolling_return(),
                                   .step_rate_hz = frame.step_rate_hz()},
                                  frame.metadata());
  }
  response.set_wanted(ring == rings_.end() || ring->second.HasReader());
  return response;
}

void FrameRelay::CheckRings() {
  checking_ = !rings_.empty();
  if (!checking_) return;
  for (const auto& ring : rings_) {
    runs_->Find(ring.first,
                [this, run_id = ring.first](const absl::StatusOr<bool>& ended) {
                  if (ended.ok() && !*ended) return;
                  loop_.Post([this, run_id] { rings_.erase(run_id); });
                });
  }
  loop_.After(kCheckPause, [this] { CheckRings(); });
}

}  // namespace tandem::slow_lane

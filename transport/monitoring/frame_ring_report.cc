#include "transport/monitoring/frame_ring_report.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "base/grace_period.h"
#include "base/os/machine.h"
#include "schema/layout/flan.h"

namespace tandem {

FrameRingReport ReadFrameRing(const ObservedFile& file, uint64_t offset,
                              uint64_t bytes, int64_t grace_ns) {
  FrameRingReport report;
  report.bytes = bytes;
  if (offset > file.bytes() || file.bytes() - offset < sizeof(FlanHeader)) {
    report.problem = "frame ring: it lies outside the file";
    return report;
  }
  // The ring ends at the latest with the file.
  const uint64_t room = std::min(bytes, file.bytes() - offset);
  report.watched =
      file.IsLocked(static_cast<int64_t>(offset) + kFlanReadersLockByte);
  for (GracePeriod grace(grace_ns);; YieldCore()) {
    FlanHeader header;
    if (!file.Read(offset, &header, sizeof(header))) {
      report.problem = "frame ring: it lies outside the file";
      return report;
    }
    const absl::StatusOr<FrameGeometry> geometry = CheckFrameRing(header, room);
    if (CodeOf(geometry.status()) == ErrorCode::kNotReady && !grace.Expired()) {
      continue;
    }
    if (!geometry.ok()) {
      report.problem = std::string(geometry.status().message());
      return report;
    }
    report.geometry = *geometry;
    // relaxed: words of a private copy.
    report.frames = header.head.load(std::memory_order_relaxed);
    // relaxed: as above.
    report.invalidated =
        (header.flags.load(std::memory_order_relaxed) & kFlanInvalidated) != 0;
    report.metrics = MetricsOf(header);
    return report;
  }
}

}  // namespace tandem

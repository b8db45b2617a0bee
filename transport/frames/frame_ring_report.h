// FrameRingReport: read-only snapshot of a frame ring, for monitoring.
//
// Data flow: the ring's header, copied and checked -> geometry and counts. No
// frame is read, and no readers' lock taken: the engine does not start to
// render for it.
// Ownership: the observer's.
//
//   FrameRingReport ring =
//       ReadFrameRing(*file, header.flan_offset, header.flan_size);
//   if (ring.problem.empty()) Show(ring.geometry, ring.frames);

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "transport/base/frame_geometry.h"
#include "transport/memory/observed_file.h"
#include "transport/ring/ring.h"

namespace tandem {

struct FrameRingReport {
  uint64_t bytes = 0;  // of the ring
  FrameGeometry geometry = {.capacity = 0};
  uint64_t frames = 0;       // published so far
  bool invalidated = false;  // its writer left
  // Whether a Tandem reader is there; others leave no trace. Nothing if the
  // kernel does not say.
  std::optional<bool> watched;
  FrameMetrics metrics;
  // What is invalid; "": nothing. Then geometry is what was checked.
  std::string problem = {};
};

// Makes two system calls. Waits only, for `grace_ns`, for a header that is not
// written yet or being rewritten. `offset` and `bytes` may be anything.
FrameRingReport ReadFrameRing(const ObservedFile& file, uint64_t offset,
                              uint64_t bytes, int64_t grace_ns = kRingGraceNs);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_

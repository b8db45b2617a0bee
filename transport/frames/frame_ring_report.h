// FrameRingReport: a read-only snapshot of a frame ring, for monitoring.
//
// Data flow: the ring's header, copied and checked -> geometry and counts. It
// reads no frame and takes no readers' lock, so the engine does not begin to
// render.
// Ownership: the observer owns the report.
//
//   FrameRingReport ring =
//       ReadFrameRing(*file, header.flan_offset, header.flan_size);
//   if (ring.problem.empty()) Show(ring.geometry, ring.frames);

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "transport/memory/frame_geometry.h"
#include "transport/memory/observed_file.h"
#include "transport/ring/ring.h"

namespace tandem {

struct FrameRingReport {
  uint64_t bytes = 0;  // of the ring
  FrameGeometry geometry = {.capacity = 0};
  uint64_t frames = 0;       // published so far
  bool invalidated = false;  // the writer has left
  // Whether a Tandem reader is attached; other readers hold no lock. nullopt if
  // the kernel reports an error.
  std::optional<bool> watched;
  FrameMetrics metrics;
  // The first invalid value; "": none. Then `geometry` is checked.
  std::string problem = {};
};

// Makes two system calls. Waits at most `grace_ns`, and only for a header that
// is unwritten or being rewritten. `offset` and `bytes` may have any value.
FrameRingReport ReadFrameRing(const ObservedFile& file, uint64_t offset,
                              uint64_t bytes, int64_t grace_ns = kRingGraceNs);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_RING_REPORT_H_

// ReadFrameRing: a read-only snapshot of a frame ring, for monitoring.
//
// Data flow: the ring's header, copied and checked -> geometry and counts. It
// reads no frame and takes no readers' lock, so the engine does not begin to
// render.
// Ownership: the observer owns the report.

#pragma once

#include <cstdint>

#include "transport/memory/observed_file.h"
#include "transport/report.h"
#include "transport/ring/ring.h"

namespace tandem {

// Makes two system calls. Waits at most `grace_ns`, and only for a header that
// is unwritten or being rewritten. `offset` and `bytes` may have any value.
FrameRingReport ReadFrameRing(const ObservedFile& file, uint64_t offset,
                              uint64_t bytes, int64_t grace_ns = kRingGraceNs);

}  // namespace tandem

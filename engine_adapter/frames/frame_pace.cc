#include "engine_adapter/frames/frame_pace.h"

#include <algorithm>

namespace tandem {
namespace {

// Cores are scarce if a frame waited for more than 1/8 of its own work's time.
constexpr int64_t kContendedPart = 8;
// With scarce cores, the pause is this many times the frame's work.
constexpr int64_t kRestParts = 15;
// The longest pause; viewers see that the engine lives.
constexpr int64_t kMaxRestNs = 1'000'000'000;

}  // namespace

void FramePace::Drew(int64_t begin_ns, int64_t end_ns, int64_t waited_ns) {
  due_ns_ = std::clamp(due_ns_ + period_ns_, begin_ns, begin_ns + period_ns_);
  const int64_t work_ns = end_ns - begin_ns - waited_ns;
  if (!complete_ && waited_ns > work_ns / kContendedPart) {
    due_ns_ =
        std::max(due_ns_, end_ns + std::min(kRestParts * work_ns, kMaxRestNs));
  }
}

}  // namespace tandem

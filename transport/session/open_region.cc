#include "transport/session/open_region.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"

namespace tandem {

absl::StatusOr<AttachedRegion> OpenByDeadline(absl::string_view name,
                                              InterruptHook interrupted,
                                              Deadline deadline) {
  const int64_t start_ns = MonotonicNanos();
  timespec pause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (;;) {
    absl::StatusOr<AttachedRegion> region = AttachedRegion::Open(name);
    if (CodeOf(region.status()) != ErrorCode::kNotReady) return region;
    if (const int64_t now_ns = MonotonicNanos(); deadline.PassedAt(now_ns)) {
      return MakeError(
          ErrorCode::kNotReady,
          absl::StrFormat("%s; waited %.3g s", region.status().message(),
                          static_cast<double>(now_ns - start_ns) / 1e9));
    }
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(2 * pause.tv_nsec, 20'000'000L);
    if (interrupted != nullptr && interrupted()) {
      return MakeError(
          ErrorCode::kInterrupted,
          absl::StrCat("interrupted while waiting for region '", name, "'"));
    }
  }
}

}  // namespace tandem

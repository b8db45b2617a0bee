#include "transport/session/open_region.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {

absl::StatusOr<AttachedRegion> OpenByDeadline(absl::string_view name,
                                              InterruptHook interrupted,
                                              Deadline deadline) {
  timespec pause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (;;) {
    absl::StatusOr<AttachedRegion> region = AttachedRegion::Open(name);
    if (region.ok() || CodeOf(region.status()) != ErrorCode::kNotReady ||
        deadline.PassedAt(MonotonicNanos())) {
      return region;
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

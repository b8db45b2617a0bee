// OpenByDeadline: waits for an engine's region, and maps it.

#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "transport/memory/attached_region.h"
#include "transport/wait_strategy.h"

namespace tandem {

// Blocks until an engine serves the region. Errors: those of
// AttachedRegion::Open, kNotReady only after the deadline; kInterrupted.
absl::StatusOr<AttachedRegion> OpenByDeadline(absl::string_view name,
                                              InterruptHook interrupted,
                                              Deadline deadline);

}  // namespace tandem

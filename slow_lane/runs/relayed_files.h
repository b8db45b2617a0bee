// The files of a run's folder that go from the worker's machine to the
// daemon's.

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Bytes of one file. Of a longer log the rest stays where it is; another file
// that is longer stays there whole.
inline constexpr uint64_t kMaxRelayedFile = uint64_t{256} << 20;
// Files of one run.
inline constexpr size_t kMaxRelayedFiles = 100;
// Bytes of one call.
inline constexpr size_t kMaxRelayedPart = size_t{1} << 20;

// Whether it is the plain name of a summary, a log or a film: not a record of
// the daemon or a proxy, and not the worker's standard output, whose events the
// daemon gets.
bool IsRelayedFile(absl::string_view name);

}  // namespace tandem::slow_lane

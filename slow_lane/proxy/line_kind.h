// LineKind: what a line that a worker printed may be.

#ifndef TANDEM_SLOW_LANE_PROXY_LINE_KIND_H_
#define TANDEM_SLOW_LANE_PROXY_LINE_KIND_H_

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Of the schemas in schema/telemetry: the one that there is.
inline constexpr int kEventSchemaVersion = 1;

enum class LineKind { kStep, kEpisode, kLifecycle, kText, kMalformed };

// "step", "episode", "lifecycle", "text", "malformed".
inline absl::string_view LineKindName(LineKind kind) {
  constexpr absl::string_view kNames[] = {"step", "episode", "lifecycle",
                                          "text", "malformed"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_LINE_KIND_H_

// EvalSummary: the content of eval_summary.json, the results of an evaluation
// so far.
//
// Data flow: MOSAIC's evaluation rewrites the file after each batch; a tab in
// the mode policy_eval reads it every second. The bytes are untrusted and may
// be incomplete. The parser limits their size and throws no exceptions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

struct EvalSummary {
  int64_t batches = 0;  // "batch_index"
  int64_t episodes = 0;
  double avg_return = 0;
  double min_return = 0;
  double max_return = 0;
  friend bool operator==(const EvalSummary&, const EvalSummary&) = default;
};

// Missing keys count as 0, as in MOSAIC; null is NaN, or 0 of a count. nullopt:
// the text is not a complete JSON object, or a value is not a number.
std::optional<EvalSummary> ParseEvalSummary(absl::string_view json);

// nullopt: missing, unreadable, over 1 MiB, not a plain file, or as above. The
// caller then keeps its last value. Does not block on pipes.
std::optional<EvalSummary> ReadEvalSummary(const std::string& path);

// Its name in the folder of a run of Tandem's daemon.
inline constexpr absl::string_view kEvalSummaryFile = "eval_summary.json";

// Returns MOSAIC's path of a run's file, relative to the working directory.
std::string DefaultEvalSummaryPath(absl::string_view run_id);

// Returns two lines for the overlay.
std::string EvalSummaryText(const EvalSummary& summary);

}  // namespace tandem

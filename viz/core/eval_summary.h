// EvalSummary: what eval_summary.json says about an evaluation so far.
//
// Data flow: MOSAIC's evaluation rewrites the file after each batch; a tab in
// the mode policy_eval reads it again every second. Other people's bytes, maybe
// half written: bounded, parsed without exceptions, checked.
//
//   if (std::optional<EvalSummary> now = ReadEvalSummary(path)) summary = *now;

#ifndef TANDEM_VIZ_CORE_EVAL_SUMMARY_H_
#define TANDEM_VIZ_CORE_EVAL_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

struct EvalSummary {
  int64_t batches = 0;  // "batch_index", as the file counts
  int64_t episodes = 0;
  double avg_return = 0;
  double min_return = 0;
  double max_return = 0;
  friend bool operator==(const EvalSummary&, const EvalSummary&) = default;
};

// Keys that are missing or null count as 0, as MOSAIC's own tab takes them.
// Nothing: no JSON object (yet), or a key that is no number.
std::optional<EvalSummary> ParseEvalSummary(absl::string_view json);

// Nothing: not there, not readable, over 1 MiB, no plain file, or see above;
// the caller keeps what it had. Does not block on pipes.
std::optional<EvalSummary> ReadEvalSummary(const std::string& path);

// Where MOSAIC keeps a run's file, below the current folder.
std::string DefaultEvalSummaryPath(absl::string_view run_id);

// Two lines for the overlay.
std::string EvalSummaryText(const EvalSummary& summary);

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_EVAL_SUMMARY_H_

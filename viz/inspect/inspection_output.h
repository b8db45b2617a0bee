// An inspection as a table for users, and as one JSON object. viz/README.md
// lists the keys.
//
// Data flow: Inspection -> lines of printable ASCII, each ended by a newline;
// or JSON.
//
//   std::cout << TextOf(inspection, absl::Now(), absl::LocalTimeZone());
//   std::cout << JsonOf(inspection) << "\n";

#ifndef TANDEM_VIZ_INSPECT_INSPECTION_OUTPUT_H_
#define TANDEM_VIZ_INSPECT_INSPECTION_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "transport/session/step_times.h"
#include "viz/inspect/inspection.h"

namespace tandem {

// Problems first, then both sides, the speed, and the content of each part. At
// most some 60 lines. A failed inspection gives one sentence.
std::string TextOf(const Inspection& inspection, absl::Time now,
                   absl::TimeZone zone);

// A heading, and a line for each.
std::string ListTextOf(const std::vector<Inspection>& inspections);

// Bars, one for each bucket or, where there are many, each few; "" for none.
std::string BarsOf(const StepTimesSnapshot& times);

// One line, without a newline. Unknown values are null.
std::string JsonOf(const Inspection& inspection);

// {"entries": [...]}: each as JsonOf has it.
std::string ListJsonOf(const std::vector<Inspection>& inspections);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_INSPECTION_OUTPUT_H_

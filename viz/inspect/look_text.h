// A look as a table that a person reads in ten seconds.
//
// Data flow: Look -> lines of printable ASCII, each ended by a newline.
//
//   std::cout << TextOf(look, absl::Now(), absl::LocalTimeZone());

#ifndef TANDEM_VIZ_INSPECT_LOOK_TEXT_H_
#define TANDEM_VIZ_INSPECT_LOOK_TEXT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "transport/session/step_times.h"
#include "viz/inspect/look.h"

namespace tandem {

// What is wrong first, then who is there, how fast, and what each part holds.
// At most some 60 lines. Of a look that has a status only the sentence.
std::string TextOf(const Look& look, absl::Time now, absl::TimeZone zone);

// A line for each, and a heading.
std::string ListTextOf(const std::vector<Look>& looks);

// Bars, one for each bucket or, where there are many, each few; "" for none.
std::string BarsOf(const StepTimesSnapshot& times);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_LOOK_TEXT_H_

// An inspection as lines for users, and as one JSON object.
// docs/inspector_keys.md lists the keys.
//
// Data flow: Inspection -> lines of printable ASCII, each ended by a newline;
// or JSON.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "transport/step_times.h"
#include "viz/inspect/inspection.h"

namespace tandem {

// "ok", "look", "broken" or "unreadable".
const char* StateOf(const Inspection& inspection);

// Problems first, then both sides, the rates, and the content of each part; at
// most about 60 lines. A failed inspection gives one sentence.
std::string TextOf(const Inspection& inspection, absl::Time now,
                   absl::TimeZone zone);

// A heading, and one line for each inspection.
std::string ListTextOf(const std::vector<Inspection>& inspections);

// Bars, each for one bucket or for a group of buckets; "": no step times.
std::string BarsOf(const StepTimesSnapshot& times, uint32_t width = 50);

// One line, without a newline. Unknown values are null.
std::string JsonOf(const Inspection& inspection);

// The keys of JsonOf with their meanings: a table in Markdown.
std::string KeysTable();

// What an engine's panel shows, as JsonOf's line: `known`, whether the name is
// a region with a header; `rows`, pairs of a title and a text; `times`, lines
// with bars; `services_on`, `services_off`.
std::string PanelJsonOf(const Inspection& inspection);

// {"entries": [...]}: each is as JsonOf's.
std::string ListJsonOf(const std::vector<Inspection>& inspections);

}  // namespace tandem

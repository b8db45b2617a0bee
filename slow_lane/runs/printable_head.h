// PrintableHead: how a line begins, as text that any terminal and any database
// takes.
//
//   PrintableHead("a\0b", 80);  // "a\\x00b"

#ifndef TANDEM_SLOW_LANE_RUNS_PRINTABLE_HEAD_H_
#define TANDEM_SLOW_LANE_RUNS_PRINTABLE_HEAD_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// At most `max_bytes` bytes of valid UTF-8. What is none, and control
// characters, become \xNN byte by byte; a text that is longer is cut between
// two characters. Allocates.
std::string PrintableHead(absl::string_view text, size_t max_bytes);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_PRINTABLE_HEAD_H_

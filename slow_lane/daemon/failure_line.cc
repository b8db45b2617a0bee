#include "slow_lane/daemon/failure_line.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem::slow_lane {
namespace {

// Returns a dotted name such as "courier.SolverError" before ": ", or as the
// whole line; empty: the line does not begin with one.
absl::string_view ClassNameOf(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(": "));
  const absl::string_view last = name.substr(name.rfind('.') + 1);
  const bool is_name = std::ranges::all_of(name, [](char byte) {
    return absl::ascii_isalnum(static_cast<unsigned char>(byte)) ||
           byte == '_' || byte == '.';
  });
  return is_name && !last.empty() &&
                 absl::ascii_isupper(static_cast<unsigned char>(last[0]))
             ? name
             : "";
}

}  // namespace

std::string FailureLine(absl::string_view failure_reason) {
  absl::string_view found;
  bool after_code = false;  // the line before is indented: a traceback's
  for (absl::string_view line : absl::StrSplit(failure_reason, '\n')) {
    const absl::string_view name = ClassNameOf(line);
    if (!name.empty() && (after_code || absl::EndsWith(name, "Error") ||
                          absl::EndsWith(name, "Exception"))) {
      found = line;
    }
    after_code = absl::StartsWith(line, " ");
    if (absl::ConsumePrefix(&line, "  what():  ")) found = line;
  }
  return std::string(found);
}

}  // namespace tandem::slow_lane

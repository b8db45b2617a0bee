#include "slow_lane/ctl/cut_to.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "slow_lane/ctl/text_table.h"
#include "transport/base/screen.h"

namespace tandem::slow_lane {

std::string CutTo(absl::string_view text, size_t rows, size_t columns) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (lines.size() > rows) {
    const size_t missing = lines.size() - rows + 1;
    lines.resize(rows);
    if (rows > 0) {
      lines.back() =
          absl::StrCat("... ", missing, " more lines than the window has");
    }
  }
  for (std::string& line : lines) {
    line = absl::StrCat(OneLine(line, columns), kClearRestOfLine);
  }
  return absl::StrJoin(lines, "\r\n");
}

}  // namespace tandem::slow_lane

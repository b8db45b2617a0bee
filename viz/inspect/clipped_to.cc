#include "viz/inspect/clipped_to.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "transport/base/screen.h"

namespace tandem {

std::string ClippedTo(absl::string_view text, size_t rows, size_t columns) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const size_t shown = lines.size() <= rows ? lines.size()
                       : rows > 0           ? rows - 1
                                            : 0;
  std::string clipped;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) absl::StrAppend(&clipped, "\r\n");
    absl::StrAppend(&clipped, lines[i].substr(0, columns), kClearRestOfLine);
  }
  if (shown < lines.size() && rows > 0) {
    const std::string rest = absl::StrCat("... ", lines.size() - shown,
                                          " more lines: a larger window, or "
                                          "without --watch");
    absl::StrAppend(&clipped, shown > 0 ? "\r\n" : "", rest.substr(0, columns),
                    kClearRestOfLine);
  }
  return clipped;
}

}  // namespace tandem

// What of a text fits into a terminal's window.
//
//   Screen screen(ClippedTo);

#ifndef TANDEM_VIZ_INSPECT_CLIPPED_TO_H_
#define TANDEM_VIZ_INSPECT_CLIPPED_TO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// The first `rows` lines, each cut to `columns`, and a line that says what was
// cut off, for a terminal that shows them from its top left corner.
std::string ClippedTo(absl::string_view text, size_t rows, size_t columns);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_CLIPPED_TO_H_

// What of a text, others' names among it, fits into a terminal's window.
//
//   CutTo(text, window.ws_row, window.ws_col - 1);

#ifndef TANDEM_SLOW_LANE_CTL_CUT_TO_H_
#define TANDEM_SLOW_LANE_CTL_CUT_TO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// The first `rows` lines, each cut to `columns` characters, for a terminal that
// shows them from its top left corner; the last of them says how many did not
// fit.
std::string CutTo(absl::string_view text, size_t rows, size_t columns);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_CUT_TO_H_

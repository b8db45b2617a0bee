// IsPort: what may stand behind the last colon of an address of TCP. gRPC
// itself takes a number modulo 65536, and names such as http.
//
//   if (!IsPort(digits)) return Expected("a PORT from 1 to 65535", digits);

#ifndef TANDEM_SLOW_LANE_WIRE_PORT_H_
#define TANDEM_SLOW_LANE_WIRE_PORT_H_

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// 1 to 65535, in digits alone.
inline bool IsPort(absl::string_view text) {
  uint32_t port = 0;
  return text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_WIRE_PORT_H_

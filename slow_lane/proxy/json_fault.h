// JsonFault: where and why a line is no JSON, in words for whoever prints such
// lines.
//
// Data flow: a line that simdjson refused, and its error -> the line read
// again, slowly -> a sentence. Only for what is malformed.
//
//   DescribeJsonFault(R"({"reward": NaN})", error);
//   // "JSON: expected a value at byte 11, found NaN, which JSON lacks: ..."

#ifndef TANDEM_SLOW_LANE_PROXY_JSON_FAULT_H_
#define TANDEM_SLOW_LANE_PROXY_JSON_FAULT_H_

#include <simdjson.h>

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Printable, at most a few hundred bytes. Allocates.
std::string DescribeJsonFault(absl::string_view line,
                              simdjson::error_code error, size_t max_depth);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_JSON_FAULT_H_

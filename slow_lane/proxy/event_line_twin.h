// A naive twin of EventLineParser, for tests: the same rules, written down once
// more by other means (nlohmann_json), slow and plain.
//
//   ParseByTwin(line, &batch) == parser.Parse(line, &other)
//
// Texts of JSON are left as nlohmann prints them: compare with Normalized.

#ifndef TANDEM_SLOW_LANE_PROXY_EVENT_LINE_TWIN_H_
#define TANDEM_SLOW_LANE_PROXY_EVENT_LINE_TWIN_H_

#include <string>

#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/proxy/event_line.h"

namespace tandem::slow_lane {

LineKind ParseByTwin(const std::string& line, v1::EventBatch* batch);

// The JSON as nlohmann prints it; what is none, as it is.
std::string Normalized(const std::string& json);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_EVENT_LINE_TWIN_H_

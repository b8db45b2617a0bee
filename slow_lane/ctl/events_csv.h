// A run's events as CSV: the header line, and the rows of a batch.
//
//   std::string csv = CsvHeader(ExportCommand::What::kSteps);
//   AppendCsv(batch, ExportCommand::What::kSteps, &csv);

#ifndef TANDEM_SLOW_LANE_CTL_EVENTS_CSV_H_
#define TANDEM_SLOW_LANE_CTL_EVENTS_CSV_H_

#include <string>

#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/ctl/ctl_options.h"

namespace tandem::slow_lane {

// The names are those of the table's columns, as docs/telemetry_queries.md has
// them; `timestamp` is text, empty where the event has none.
std::string CsvHeader(ExportCommand::What what);

// The rows of one of the batch's streams.
void AppendCsv(const v1::EventBatch& batch, ExportCommand::What what,
               std::string* csv);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_EVENTS_CSV_H_

// How runs are shown: as a table, as lines of a log, and one of them alone.
//
// Data flow: DescribeRuns' answer, the time -> text, or JSON.
//
//   std::cout << RunsTable(response.runs(), absl::Now());

#ifndef TANDEM_SLOW_LANE_CTL_RUNS_TEXT_H_
#define TANDEM_SLOW_LANE_CTL_RUNS_TEXT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

// Of a run that has ended, how long it took; else how long ago it was
// submitted. Seconds.
double AgeSecs(const v1::RunDescription& run, absl::Time now);

// What is wrong with a run, or waited for, on one line; empty: nothing.
std::string RemarkOn(const v1::RunDescription& run, absl::Time now);

// A line for each, in the order given, below a line of titles.
std::string RunsTable(const std::vector<v1::RunDescription>& runs,
                      absl::Time now);

// "3 runs: 2 EXECUTING, 1 FAULTED; 1,200 steps/s".
std::string RunsSummary(const std::vector<v1::RunDescription>& runs);

// One run, on a line: for output that is no terminal.
std::string RunLine(const v1::RunDescription& run, absl::Time now);

// One run, with all that is known, and its last episodes (the newest last).
std::string RunPage(const v1::RunDescription& run,
                    const std::vector<gymgui::trainer::RunEpisode>& episodes,
                    absl::Time now);

// An object with all of them.
std::string RunsJson(const v1::DescribeRunsResponse& response);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_RUNS_TEXT_H_

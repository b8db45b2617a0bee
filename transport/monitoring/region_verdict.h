// RegionVerdict: the problems of a region, as sentences.
//
// Data flow: RegionReport -> problems and remarks, the worst first.
//
//   RegionVerdict verdict = JudgeRegion(report);
//   if (!verdict.problems.empty()) return 3;

#ifndef TANDEM_TRANSPORT_MONITORING_REGION_VERDICT_H_
#define TANDEM_TRANSPORT_MONITORING_REGION_VERDICT_H_

#include <string>
#include <vector>

#include "transport/monitoring/region_report.h"

namespace tandem {

struct RegionVerdict {
  // The region is corrupt, or a side died: no step is possible.
  std::vector<std::string> problems;
  // Conditions to check: a stalled side, a full ring, a failed step.
  std::vector<std::string> remarks;
};

// Each sentence states a finding, its meaning, and the next action if there is
// one.
RegionVerdict JudgeRegion(const RegionReport& report);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MONITORING_REGION_VERDICT_H_

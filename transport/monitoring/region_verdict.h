// RegionVerdict: what is wrong with a region, in sentences.
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
  // To be checked: something stands still, fills up, or failed.
  std::vector<std::string> remarks;
};

// Each sentence says what was found, what it means and, where there is
// something to do, what.
RegionVerdict JudgeRegion(const RegionReport& report);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MONITORING_REGION_VERDICT_H_

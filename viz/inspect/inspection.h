// Inspection: one snapshot of a region or of a frame segment. Inspector makes
// inspections, and keeps earlier ones to compute rates.
//
// Data flow: names -> reports (transport/monitoring) -> inspections, with rates
// and verdicts -> text or JSON. Ownership: the command's one thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/report.h"

namespace tandem {

struct Inspection {
  std::string name;  // escaped
  bool is_segment = false;
  absl::Status status;  // not OK: nothing could be read, the rest is empty
  RegionVerdict verdict;

  RegionReport region;               // of a region
  std::optional<RegionRates> rates;  // since the last inspection

  SegmentReport segment;  // of a segment
  std::optional<double> frames_per_sec;
};

class Inspector {
 public:
  // Inspects a region by its name, a segment by its full name, or a segment by
  // its run id if no region has that name. Waits as ReadRegionReport does.
  Inspection InspectName(absl::string_view name);

  // Inspects all entries of ListShared, in its order. Omits entries that were
  // removed in the meantime.
  std::vector<Inspection> InspectAll();

 private:
  Inspection Inspect(const SharedName& at);

  std::map<std::string, Inspection> before_;  // by name, not escaped
};

}  // namespace tandem

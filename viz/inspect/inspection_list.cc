// The list of inspections, and the bars of a histogram, as text.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schema/layout/phase_word.h"
#include "viz/core/quantities.h"
#include "viz/inspect/inspection_output.h"

namespace tandem {
namespace {

struct ListRow {
  std::string state;
  std::string name;
  std::string what;
  std::string does;
};

ListRow SegmentRow(const Inspection& inspection) {
  const FrameRingReport& ring = inspection.segment.ring;
  return {
      absl::AsciiStrToUpper(StateOf(inspection)), inspection.name,
      absl::StrFormat("frames, %dx%d", ring.geometry.width,
                      ring.geometry.height),
      absl::StrFormat("writer %s, %s published, %.1f/s",
                      NameOf(inspection.segment.writer), CountText(ring.frames),
                      inspection.frames_per_sec.value_or(0))};
}

ListRow RegionRow(const Inspection& inspection) {
  const RegionReport& region = inspection.region;
  const bool has_client = region.client.life != Life::kAbsent;
  const double rate =
      inspection.rates ? inspection.rates->exchanges_per_sec : 0;
  return {
      absl::AsciiStrToUpper(StateOf(inspection)), inspection.name,
      region.has_header
          ? absl::StrFormat("%s x %s", region.task, CountText(region.num_envs))
          : "region",
      absl::StrFormat(
          "engine %s, client %s, %s exchanges/s", NameOf(region.engine.phase),
          has_client ? NameOf(region.client.life) : "none", RoundedText(rate))};
}

ListRow RowOf(const Inspection& inspection) {
  if (!inspection.status.ok()) {
    return {"?", inspection.name, inspection.is_segment ? "frames" : "region",
            std::string(inspection.status.message())};
  }
  ListRow row =
      inspection.is_segment ? SegmentRow(inspection) : RegionRow(inspection);
  if (!inspection.verdict.problems.empty()) {
    row.does = inspection.verdict.problems.front();
  } else if (!inspection.verdict.remarks.empty()) {
    row.does = inspection.verdict.remarks.front();
  }
  return row;
}

}  // namespace

std::string ListTextOf(const std::vector<Inspection>& inspections) {
  if (inspections.empty()) {
    return "no region and no segment of frames is in shared memory\n";
  }
  std::vector<ListRow> rows = {{"", "NAME", "what", "does"}};
  for (const Inspection& inspection : inspections)
    rows.push_back(RowOf(inspection));
  constexpr size_t kWidest = 40;  // longer names shift the rest of the line
  size_t name_width = 0;
  size_t what_width = 0;
  for (const ListRow& row : rows) {
    name_width = std::max(name_width, std::min(row.name.size(), kWidest));
    what_width = std::max(what_width, std::min(row.what.size(), kWidest));
  }
  std::string text;
  for (const ListRow& row : rows) {
    absl::StrAppendFormat(&text, "%-6s %-*s %-*s %s\n", row.state,
                          static_cast<int>(name_width), row.name,
                          static_cast<int>(what_width), row.what, row.does);
  }
  return text;
}

std::string BarsOf(const StepTimesSnapshot& times, uint32_t width) {
  constexpr uint32_t kMostBars = 14;
  uint32_t first = 0;
  while (first < StepTimes::kBuckets && times.counts[first] == 0) ++first;
  if (first == StepTimes::kBuckets) return "";
  uint32_t last = StepTimes::kBuckets - 1;
  while (times.counts[last] == 0) --last;
  // Bars of 1/4, 1/2, 1 and 2 octaves.
  uint32_t group = 1;
  while (last / group - first / group >= kMostBars) group *= 2;

  std::vector<uint64_t> bars;
  for (uint32_t at = first / group; at <= last / group; ++at) {
    uint64_t sum = 0;
    for (uint32_t bucket = at * group;
         bucket < std::min((at + 1) * group, StepTimes::kBuckets); ++bucket) {
      sum += times.counts[bucket];
    }
    bars.push_back(sum);
  }
  const double longest =
      static_cast<double>(*std::max_element(bars.begin(), bars.end()));
  std::string text;
  for (size_t i = 0; i < bars.size(); ++i) {
    const uint32_t bucket = (first / group + static_cast<uint32_t>(i)) * group;
    // A bucket that is not empty is always visible.
    const double share =
        longest > 0 ? static_cast<double>(bars[i]) / longest : 0;
    const auto length = static_cast<uint32_t>(std::ceil(share * width));
    absl::StrAppendFormat(
        &text, "  %8s |%-*s %s\n",
        DurationText(static_cast<double>(StepTimeBucketStart(bucket))), width,
        std::string(length, '#'), bars[i] == 0 ? "" : CountText(bars[i]));
  }
  return text;
}

}  // namespace tandem

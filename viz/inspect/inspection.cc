#include "viz/inspect/inspection.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "transport/region.h"

namespace tandem {
namespace {

RegionVerdict JudgeSegment(const SegmentReport& segment) {
  RegionVerdict verdict;
  if (segment.writer == Life::kDead) {
    verdict.problems.push_back(
        "its writer died: killed, or crashed; the next of "
        "that run replaces it");
  }
  if (!segment.ring.problem.empty()) {
    verdict.problems.push_back(segment.ring.problem);
  } else if (segment.ring.invalidated) {
    verdict.remarks.push_back("its writer has left: no more frames will come");
  }
  return verdict;
}

std::optional<double> FramesPerSec(const SegmentReport& earlier,
                                   const SegmentReport& later) {
  if (earlier.read_ns >= later.read_ns ||
      earlier.ring.frames > later.ring.frames) {
    return std::nullopt;
  }
  return static_cast<double>(later.ring.frames - earlier.ring.frames) * 1e9 /
         static_cast<double>(later.read_ns - earlier.read_ns);
}

}  // namespace

Inspection Inspector::InspectName(absl::string_view name) {
  if (absl::StartsWith(name, kFlanSegmentPrefix)) {
    return Inspect({std::string(name), /*is_segment=*/true});
  }
  Inspection region = Inspect({std::string(name), /*is_segment=*/false});
  const ErrorCode code = CodeOf(region.status);
  if (code == ErrorCode::kNotReady || code == ErrorCode::kInvalidArgument) {
    const absl::StatusOr<std::string> run = FrameSegmentName(name);
    if (run.ok()) {
      Inspection segment = Inspect({*run, /*is_segment=*/true});
      if (CodeOf(segment.status) != ErrorCode::kNotReady) return segment;
    }
  }
  return region;
}

std::vector<Inspection> Inspector::InspectAll() {
  std::vector<Inspection> inspections;
  for (const SharedName& at : ListShared()) {
    Inspection inspection = Inspect(at);
    if (CodeOf(inspection.status) == ErrorCode::kNotReady) continue;
    inspections.push_back(std::move(inspection));
  }
  return inspections;
}

Inspection Inspector::Inspect(const SharedName& at) {
  Inspection inspection;
  inspection.name = Printable(at.name);
  inspection.is_segment = at.is_segment;
  const auto before = before_.find(at.name);
  if (at.is_segment) {
    absl::StatusOr<SegmentReport> segment = ReadSegmentReport(at.name);
    inspection.status = segment.status();
    if (segment.ok()) {
      inspection.segment = *std::move(segment);
      inspection.verdict = JudgeSegment(inspection.segment);
      if (before != before_.end()) {
        inspection.frames_per_sec =
            FramesPerSec(before->second.segment, inspection.segment);
      }
    }
  } else {
    absl::StatusOr<RegionReport> region = ReadRegionReport(at.name);
    inspection.status = region.status();
    if (region.ok()) {
      inspection.region = *std::move(region);
      inspection.verdict = JudgeRegion(inspection.region);
      if (before != before_.end()) {
        inspection.rates =
            RatesBetween(before->second.region, inspection.region);
      }
    }
  }
  if (inspection.status.ok()) {
    before_.insert_or_assign(at.name, inspection);
  } else {
    before_.erase(at.name);
  }
  return inspection;
}

}  // namespace tandem

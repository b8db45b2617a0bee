#include "viz/inspect/look.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schema/layout/flan.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"
#include "transport/frames/frame_segment_name.h"

namespace tandem {
namespace {

RegionVerdict JudgeSegment(const SegmentReport& segment) {
  RegionVerdict verdict;
  if (segment.writer == Life::kDead) {
    verdict.problems.push_back(
        "its writer is gone without a word: killed, or crashed; the next of "
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

Look Onlooker::LookAtName(absl::string_view name) {
  if (absl::StartsWith(name, kFlanSegmentPrefix)) {
    return LookAt({std::string(name), /*is_segment=*/true});
  }
  Look region = LookAt({std::string(name), /*is_segment=*/false});
  const ErrorCode code = CodeOf(region.status);
  if (code == ErrorCode::kNotReady || code == ErrorCode::kInvalidArgument) {
    const absl::StatusOr<std::string> run = FrameSegmentName(name);
    if (run.ok()) {
      Look segment = LookAt({*run, /*is_segment=*/true});
      if (CodeOf(segment.status) != ErrorCode::kNotReady) return segment;
    }
  }
  return region;
}

std::vector<Look> Onlooker::LookAtAll() {
  std::vector<Look> looks;
  for (const SharedName& at : ListShared()) {
    Look look = LookAt(at);
    if (CodeOf(look.status) == ErrorCode::kNotReady) continue;
    looks.push_back(std::move(look));
  }
  return looks;
}

Look Onlooker::LookAt(const SharedName& at) {
  Look look;
  look.name = Printable(at.name);
  look.is_segment = at.is_segment;
  const auto before = before_.find(at.name);
  if (at.is_segment) {
    absl::StatusOr<SegmentReport> segment = ReadSegmentReport(at.name);
    look.status = segment.status();
    if (segment.ok()) {
      look.segment = *std::move(segment);
      look.verdict = JudgeSegment(look.segment);
      if (before != before_.end()) {
        look.frames_per_sec =
            FramesPerSec(before->second.segment, look.segment);
      }
    }
  } else {
    absl::StatusOr<RegionReport> region = ReadRegionReport(at.name);
    look.status = region.status();
    if (region.ok()) {
      look.region = *std::move(region);
      look.verdict = JudgeRegion(look.region);
      if (before != before_.end()) {
        look.rates = RatesBetween(before->second.region, look.region);
      }
    }
  }
  if (look.status.ok()) {
    before_.insert_or_assign(at.name, look);
  } else {
    before_.erase(at.name);
  }
  return look;
}

}  // namespace tandem

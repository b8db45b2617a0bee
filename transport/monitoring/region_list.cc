#include <map>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "base/printable.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/scene.h"
#include "transport/memory/observed_file.h"
#include "transport/monitoring/frame_ring_report.h"
#include "transport/region.h"
#include "transport/report.h"

namespace tandem {
namespace {

constexpr size_t kMostNames = 1000;

bool HasMagic(const std::string& name) {
  const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name);
  uint32_t magic = 0;
  return file.ok() && file->Read(0, &magic, sizeof(magic)) &&
         magic == kLrbcMagic;
}

}  // namespace

std::vector<SharedName> ListShared() {
  std::map<std::string, bool> found;  // name -> is a segment
  for (const auto& [name, link] : SharedRegion::List()) {
    if (found.size() >= kMostNames) break;
    if (!IsSharedName(name)) continue;
    if (absl::StartsWith(name, kFlanSegmentPrefix)) {
      found[name] = true;
    } else if (HasMagic(name) ||
               (link == SharedRegion::Link::kSpare &&
                !absl::StartsWith(name, kSceneSegmentPrefix))) {
      found[name] = false;
    }
  }
  std::vector<SharedName> names;
  for (const auto& [name, is_segment] : found) {
    names.push_back({name, is_segment});
  }
  return names;
}

absl::StatusOr<SegmentReport> ReadSegmentReport(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const auto file, ObservedFile::Open(name));
  SegmentReport report;
  report.name = Printable(name);
  report.file_bytes = file.bytes();
  report.read_ns = MonotonicNanos();
  const std::optional<bool> locked = file.IsLocked(kFlanWriterLockByte);
  if (locked.value_or(false)) {
    report.writer = Life::kAlive;
  } else if (locked.has_value() && file.has_spare_link()) {
    report.writer = Life::kDead;
  }
  report.ring = ReadFrameRing(file, 0, file.bytes());
  return report;
}

std::optional<RunReport> ReadRunReport(absl::string_view name) {
  const bool is_segment = absl::StartsWith(name, kFlanSegmentPrefix);
  const absl::StatusOr<ObservedFile> file = ObservedFile::Open(name);
  // A small read excludes most files of /dev/shm, which are not regions.
  uint32_t magic = 0;
  if (!is_segment && (!file.ok() || !file->Read(0, &magic, sizeof(magic)) ||
                      magic != kLrbcMagic)) {
    return std::nullopt;
  }
  RunReport report;
  report.access = file.ok() ? file->CheckTrust(name) : file.status();
  if (!report.access.ok()) {
    return is_segment && CodeOf(report.access) != ErrorCode::kAccessDenied
               ? std::nullopt
               : std::optional(std::move(report));
  }
  uint64_t offset = 0;
  uint64_t bytes = file->bytes();
  if (!is_segment) {
    absl::StatusOr<LrbcHeader> header = PeekRegion(name);
    if (!header.ok()) return std::nullopt;  // no living engine
    offset = header->flan_offset;
    bytes = header->flan_size;
    report.region = *std::move(header);
  }
  if (is_segment || offset != 0) {
    report.frames = ReadFrameRing(*file, offset, bytes, /*grace_ns=*/0);
  }
  return report;
}

}  // namespace tandem

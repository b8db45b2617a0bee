// Lists the regions and segments in shared memory, by name.
//
// Data flow: the files of /dev/shm -> names for ReadRegionReport and
// ReadSegmentReport. It changes nothing, and has no effect on either side.
//
//   for (const SharedName& found : ListShared())
//     if (!found.is_segment) Show(ReadRegionReport(found.name));

#ifndef TANDEM_TRANSPORT_MONITORING_REGION_LIST_H_
#define TANDEM_TRANSPORT_MONITORING_REGION_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/frames/frame_ring_report.h"
#include "transport/monitoring/region_report.h"

namespace tandem {

struct SharedName {
  std::string name;  // as in /dev/shm; a segment's may have any bytes
  bool is_segment = false;
};

// Returns all regions and segments, of all users, live and dead, ordered by
// name: each file with a spare link, a region's magic, or a segment's prefix.
// At most 1,000.
std::vector<SharedName> ListShared();

// A segment.
struct SegmentReport {
  std::string name;  // escaped
  uint64_t file_bytes = 0;
  int64_t read_ns = 0;  // CLOCK_MONOTONIC of the copy
  // kUnknown: a foreign writer, which holds no lock.
  Life writer = Life::kUnknown;
  FrameRingReport ring;
};

// Reads a segment by its full name. Errors: those of ObservedFile::Open.
absl::StatusOr<SegmentReport> ReadSegmentReport(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MONITORING_REGION_LIST_H_

// What lies in shared memory: regions and segments of frames, by name.
//
// Data flow: the files of /dev/shm -> names for ReadRegionReport and
// ReadSegmentReport. Nothing is changed, and no side notices.
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
  std::string name;  // as in /dev/shm; a segment's may hold any bytes
  bool is_segment = false;
};

// All regions and segments, of all users, alive and dead, by name: what has a
// spare link of ours, a region's magic, or a segment's prefix. At most 1,000.
std::vector<SharedName> ListShared();

// A segment of frames that stands alone.
struct SegmentReport {
  std::string name;  // escaped
  uint64_t file_bytes = 0;
  int64_t read_ns = 0;  // CLOCK_MONOTONIC, when it was copied
  // kUnknown: a writer of another program, which holds no lock.
  Life writer = Life::kUnknown;
  FrameRingReport ring;
};

// By its full name. Errors: ObservedFile::Open's.
absl::StatusOr<SegmentReport> ReadSegmentReport(absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MONITORING_REGION_LIST_H_

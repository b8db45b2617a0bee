// FrameSegmentName: where a run's frames lie.
//
// Data flow: a run id, of any bytes -> the name of its segment.
//
//   FrameSegmentName("a/b").value()  // "mosaic.fastlane.a_b"

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_SEGMENT_NAME_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_SEGMENT_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The name in shared memory of a run's segment: kFlanSegmentPrefix and the run
// id, whose "/" become "_". kInvalidArgument: empty, with a NUL, or too long
// for a name.
absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_SEGMENT_NAME_H_

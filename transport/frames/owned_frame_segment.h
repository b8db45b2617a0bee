// OwnedFrameSegment: the stand-alone segment `mosaic.fastlane.{run_id}` of the
// run that publishes its frames.
//
// Data flow: run_id -> NamedFile, an empty ring -> linked -> readers find it;
// destruction invalidates and unlinks it.
// Ownership: one process owns a segment and writes it.
//
//   absl::StatusOr<OwnedFrameSegment> segment =
//       OwnedFrameSegment::Create("run-7", {.width = 640, .height = 480});
//   if (segment->HasReader()) segment->writer().Publish(pixels, {}, "");

#ifndef TANDEM_TRANSPORT_FRAMES_OWNED_FRAME_SEGMENT_H_
#define TANDEM_TRANSPORT_FRAMES_OWNED_FRAME_SEGMENT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/frames/frame_writer.h"
#include "transport/memory/named_file.h"

namespace tandem {

// Move-only. In a forked child it writes nothing. The caller must not use
// writer() there: ask IsOurs.
class OwnedFrameSegment {
 public:
  // Removes a dead segment of that name (one of another program, which keeps no
  // lock, counts as dead), then makes a new one. Processes that still map the
  // old one see no change, except that its name leads elsewhere. Makes system
  // calls. Errors, each leaving nothing behind:
  //   kInvalidArgument    run id or geometry
  //   kAlreadyAttached    a live writer has it, or something that is no file
  //   kOutOfSharedMemory  /dev/shm or memory has no room: needed, available
  //   kAccessDenied       the name is another user's; the text has it
  static absl::StatusOr<OwnedFrameSegment> Create(
      absl::string_view run_id, const FrameGeometry& geometry);

  OwnedFrameSegment(OwnedFrameSegment&&) noexcept = default;
  ~OwnedFrameSegment();

  FrameWriter& writer() { return writer_; }

  // Whether a reader of ours holds its lock. Asks the kernel (1 to 2 us) once a
  // second and repeats the answer meanwhile; restores the name on the way.
  // Readers of other programs leave no trace.
  bool HasReader();

  // False in a forked child, and once moved from.
  bool IsOurs() const { return file_.IsOurs(); }
  const std::string& name() const { return file_.name(); }

 private:
  OwnedFrameSegment(NamedFile file, FrameWriter writer)
      : file_(std::move(file)), writer_(std::move(writer)) {}

  NamedFile file_;
  FrameWriter writer_;
  int64_t asked_ns_ = 0;
  bool has_reader_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_OWNED_FRAME_SEGMENT_H_

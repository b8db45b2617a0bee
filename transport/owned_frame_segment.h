// OwnedFrameSegment: the segment `mosaic.fastlane.{run_id}` of a run that
// publishes its frames.
//
// Data flow: run_id -> NamedFile, an empty ring -> linked -> readers find it;
// the destructor invalidates and unlinks it.
// Ownership: one process owns a segment and writes it.
//
//   absl::StatusOr<OwnedFrameSegment> segment =
//       OwnedFrameSegment::Create("run-7", {.width = 640, .height = 480});
//   if (segment->HasReader()) segment->writer().Publish(pixels, {}, "");

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/frame_writer.h"

namespace tandem {

class NamedFile;

// Move-only. In a forked child it writes nothing. The caller must not use
// writer() there; IsOurs tells whether it may.
class OwnedFrameSegment {
 public:
  // Removes a dead segment with this name, then makes a new one. A foreign
  // segment, which has no lock, counts as dead. Processes that map the old
  // segment see no change, except that its name leads to another file. Makes
  // system calls. After an error nothing remains. Errors:
  //   kInvalidArgument    run id or geometry
  //   kAlreadyAttached    a live writer has the name, or it is not a file
  //   kOutOfSharedMemory  /dev/shm or memory has no room; the text has the
  //                       needed and the available bytes
  //   kAccessDenied       another user has the name; the text names the user
  static absl::StatusOr<OwnedFrameSegment> Create(
      absl::string_view run_id, const FrameGeometry& geometry);

  OwnedFrameSegment(OwnedFrameSegment&&) noexcept;
  ~OwnedFrameSegment();

  FrameWriter& writer() { return writer_; }

  // Whether a Tandem reader holds its lock. Queries the kernel (1 to 2 us) and
  // restores the name at most once a second; between, returns the last answer.
  // Foreign readers hold no lock.
  bool HasReader();

  // False in a forked child, and after a move from this object.
  bool IsOurs() const;
  const std::string& name() const;

 private:
  OwnedFrameSegment(NamedFile file, FrameWriter writer);

  std::unique_ptr<NamedFile> file_;  // nullptr: moved from
  FrameWriter writer_;
  int64_t asked_ns_ = 0;
  bool has_reader_ = false;
};

}  // namespace tandem

// FLAN frame rings where they lie: the stand-alone segments
// `mosaic.fastlane.{run_id}`, and the rings inside regions.
//
// Data flow: run_id -> an unnamed file, reserved, locked, an empty ring ->
// linked -> readers find it; destruction invalidates and unlinks it.
// Ownership: one process owns a segment and writes it. Readers map it for
// reading alone, and share a lock that tells the writer that somebody looks.
//
//   absl::StatusOr<OwnedFrameSegment> segment =
//       OwnedFrameSegment::Create("run-7", {.width = 640, .height = 480});
//   if (segment->HasReader()) segment->writer().Publish(pixels, {}, "");
//
//   absl::StatusOr<AttachedFrames> frames =
//       AttachedFrames::OpenSegment("run-7");
//   Frame frame;
//   if (frames->reader().Next(&frame) == FrameReader::Found::kFrame)
//   Show(frame);

#ifndef TANDEM_TRANSPORT_RING_FRAME_SEGMENT_H_
#define TANDEM_TRANSPORT_RING_FRAME_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/memory/named_file.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"
#include "transport/ring/frame_reader.h"
#include "transport/ring/frame_writer.h"

namespace tandem {

// The name in shared memory of a run's segment: kFlanSegmentPrefix and the run
// id, whose "/" become "_". kInvalidArgument: empty, with a NUL, or too long
// for a name.
absl::StatusOr<std::string> FrameSegmentName(absl::string_view run_id);

// Move-only. In a forked child it writes nothing, but it is the caller who may
// not use writer() there: ask IsOurs.
class OwnedFrameSegment {
 public:
  // Removes a dead segment of that name (a foreign one, which keeps no lock,
  // counts as dead), then makes a new one: nobody who still has the old one
  // mapped sees a change but that its name leads elsewhere. Makes system calls.
  // Errors, each leaving nothing behind:
  //   kInvalidArgument    run id or geometry
  //   kAlreadyAttached    a live writer has it, or something that is no file
  //   kOutOfSharedMemory  /dev/shm or memory has no room: needed, available
  //   kAccessDenied       the name is another user's (who is named)
  static absl::StatusOr<OwnedFrameSegment> Create(
      absl::string_view run_id, const FrameGeometry& geometry);

  OwnedFrameSegment(OwnedFrameSegment&&) noexcept = default;
  OwnedFrameSegment& operator=(OwnedFrameSegment&& other) noexcept;
  ~OwnedFrameSegment();

  FrameWriter& writer() { return writer_; }

  // Whether a reader of ours holds its lock. Asks the kernel (1 to 2 us) once a
  // second and repeats the answer meanwhile; restores the name on the way.
  // Foreign readers leave no trace.
  bool HasReader();

  // False in a forked child, and once moved from.
  bool IsOurs() const { return file_.IsOurs(); }
  const std::string& name() const { return file_.name(); }

 private:
  OwnedFrameSegment(NamedFile file, RegionLock lock,
                    std::shared_ptr<const RegionMapping> mapping,
                    FrameWriter writer);

  std::shared_ptr<const RegionMapping> mapping_;
  FrameWriter writer_;
  RegionLock lock_;
  NamedFile file_;  // last: it is unlinked while the lock is still held
  int64_t asked_ns_ = 0;
  bool has_reader_ = false;
};

// A reader's hold on a segment or on a region's ring. Move-only. In a forked
// child the lock is gone and writer() is kUnknown; the frames still come.
class AttachedFrames {
 public:
  // Maps the segment for reading and shares the readers' lock. Makes system
  // calls; does not wait. Errors:
  //   kNotReady        no such segment, or its header is not written yet
  //   kLayoutMismatch  it is no ring that this version can read
  //   kAccessDenied    it belongs to another user, who is named
  static absl::StatusOr<AttachedFrames> OpenSegment(absl::string_view run_id);

  // Maps a live engine's region for reading. Errors: FindRegion's, and
  // kUnsupported: the engine makes no frames.
  static absl::StatusOr<AttachedFrames> OpenRegion(
      absl::string_view region_name);

  FrameReader& reader() { return reader_; }

  // kUnknown: a foreign writer, which holds no lock; or asked in a forked
  // child.
  enum class Writer { kAlive, kGone, kUnknown };
  // By the writer's lock (in a region the engine's). One system call.
  Writer writer() const;

  // The name leads to another file by now. One system call.
  bool Replaced() const;

  const std::string& name() const { return name_; }

 private:
  static absl::StatusOr<AttachedFrames> Make(absl::string_view name, int fd,
                                             RegionLock lock, uint64_t offset,
                                             uint64_t bytes);
  AttachedFrames(std::string name, RegionLock lock,
                 std::shared_ptr<const RegionMapping> mapping,
                 FrameReader reader);

  std::string name_;
  std::string path_;
  RegionLock lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  FrameReader reader_;
  uint64_t device_ = 0;  // of the file, to know it again
  uint64_t inode_ = 0;
  bool writer_keeps_lock_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RING_FRAME_SEGMENT_H_

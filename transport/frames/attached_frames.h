// AttachedFrames: a reader's hold on a run's frames, in a stand-alone segment
// or in an engine's region.
//
// Data flow: run_id or region -> mapped for reading alone -> FrameReader.
// Ownership: any number of readers; each shares a lock that tells the writer
// that it is watched.
//
//   absl::StatusOr<AttachedFrames> frames =
//       AttachedFrames::OpenSegment("run-7");
//   Frame frame;
//   if (frames->reader().Next(&frame) == FrameReader::Found::kFrame)
//   Show(frame);

#ifndef TANDEM_TRANSPORT_FRAMES_ATTACHED_FRAMES_H_
#define TANDEM_TRANSPORT_FRAMES_ATTACHED_FRAMES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/frames/frame_reader.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"

namespace tandem {

// A reader's hold on a segment or on a region's ring. Move-only. In a forked
// child the lock is gone and writer() is kUnknown; the frames still come.
class AttachedFrames {
 public:
  // Maps the segment for reading and shares the readers' lock. Makes system
  // calls; does not wait. Errors:
  //   kNotReady        no such segment, or its header is not written yet
  //   kLayoutMismatch  it is no ring that this version can read
  //   kAccessDenied    it belongs to another user; the text has the name
  static absl::StatusOr<AttachedFrames> OpenSegment(absl::string_view run_id);

  // Maps a live engine's region for reading. Errors: FindRegion's, and
  // kUnsupported: the engine makes no frames.
  static absl::StatusOr<AttachedFrames> OpenRegion(
      absl::string_view region_name);

  FrameReader& reader() { return reader_; }

  // kUnknown: a writer that is not Tandem's and holds no lock; or asked in a
  // forked child.
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

#endif  // TANDEM_TRANSPORT_FRAMES_ATTACHED_FRAMES_H_

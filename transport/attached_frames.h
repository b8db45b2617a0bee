// AttachedFrames: a reader's mapping of a run's frame ring, in a segment or in
// an engine's region.
//
// Data flow: run_id or region -> mapped read-only -> FrameReader.
// Ownership: any number of readers. Each holds a shared lock, which shows the
// writer that a reader is attached.
//
//   absl::StatusOr<AttachedFrames> frames =
//       AttachedFrames::OpenSegment("run-7");
//   Frame frame;
//   if (frames->reader().Next(&frame) == FrameReader::Found::kFrame)
//   Show(frame);

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "transport/frame_reader.h"
#include "transport/region.h"

namespace tandem {

class SideLocks;

// Move-only. In a forked child the lock is closed and writer() is kUnknown; the
// reader still returns frames.
class AttachedFrames {
 public:
  // Maps the segment read-only, and takes the readers' shared lock. Makes
  // system calls; does not wait. Errors:
  //   kNotReady        no such segment, or its header is not written yet
  //   kLayoutMismatch  not a ring that this version can read
  //   kAccessDenied    another user owns it; the text names the user
  static absl::StatusOr<AttachedFrames> OpenSegment(absl::string_view run_id);

  // Maps a live engine's region read-only. Errors: those of FindRegion, and
  // kUnsupported: the engine has no frame ring.
  static absl::StatusOr<AttachedFrames> OpenRegion(
      absl::string_view region_name);

  // The segment of this run id, or, if there is no such segment, the region of
  // this name. Errors: OpenSegment's; those of OpenRegion if such a region
  // exists.
  static absl::StatusOr<AttachedFrames> OpenRun(absl::string_view run);

  AttachedFrames(AttachedFrames&&) noexcept;
  AttachedFrames& operator=(AttachedFrames&&) noexcept;
  ~AttachedFrames();

  FrameReader& reader() { return reader_; }

  // kUnknown: a foreign writer, which holds no lock; or a call in a forked
  // child.
  enum class Writer { kAlive, kGone, kUnknown };
  // The writer's state, by its lock (in a region, the engine lock). Makes one
  // system call.
  Writer writer() const;

  // Whether the name now leads to another file. Makes one system call.
  bool Replaced() const;

  const std::string& name() const { return name_; }

 private:
  static absl::StatusOr<AttachedFrames> Make(absl::string_view name,
                                             const SharedRegion& memory,
                                             SideLocks lock, uint64_t offset,
                                             uint64_t bytes);
  AttachedFrames(std::string name, SideLocks lock,
                 std::shared_ptr<const RegionMapping> mapping,
                 FrameReader reader);

  std::string name_;
  std::unique_ptr<SideLocks> lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  FrameReader reader_;
  SharedRegion::Id id_;  // of the mapped memory
  bool writer_keeps_lock_ = false;
};

}  // namespace tandem

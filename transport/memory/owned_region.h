// OwnedRegion: an engine's region, from its creation to its removal.
//
// Data flow: RegionSpec -> NamedFile, filled -> Link -> clients find it -> the
// destructor unlinks it.
// Ownership: one engine process owns it.
//
//   absl::StatusOr<OwnedRegion> region = OwnedRegion::Create("demo", spec, {});
//   ... fill region->mapping() ...
//   absl::Status linked = region->Link();

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/field.h"
#include "schema/layout/worker_slot.h"
#include "transport/frame_geometry.h"
#include "transport/memory/named_file.h"
#include "transport/memory/region_plan.h"
#include "transport/region.h"

namespace tandem {

struct RegionOptions {
  bool group_access = false;  // mode 0660 instead of 0600
};

// Move-only. Legal order: Create, then Link once, then any call. In a forked
// child it unlinks nothing, and every query returns false.
class OwnedRegion {
 public:
  // Removes this user's dead regions, then makes a region without a name. Its
  // memory is reserved and touched, the engine lock is held, the constant
  // header fields, the description, the table of fields and the workers' rows
  // are written, and all other bytes are zero. After an error nothing remains.
  // In the name that is asked for, "{pid}" stands for this process's id. "" is
  // DefaultRegionName(); if a live engine has the name "tandem", Link takes
  // "tandem-2", or the next that is free.
  // Errors:
  //   kInvalidArgument     name or sizes
  //   kAlreadyAttached     a live engine has the name; the text has its pid
  //   kOutOfSharedMemory   /dev/shm or memory has no room; the text has the
  //                        needed and the available bytes
  //   kAccessDenied        another user has the name; the text names the user
  static absl::StatusOr<OwnedRegion> Create(absl::string_view asked,
                                            const RegionSpec& spec,
                                            const RegionOptions& options);

  OwnedRegion(OwnedRegion&&) noexcept = default;

  // Gives the region its name; see Create. kAlreadyAttached if another engine
  // took it first.
  absl::Status Link();

  // As NamedFile::RestoreName.
  void RestoreName() const { file_.RestoreName(); }

  // As NamedFile::RemoveName.
  void RemoveName() const { file_.RemoveName(); }

  // False in a forked child, and after a move from this object.
  bool IsOurs() const { return file_.IsOurs(); }
  // Whether a process holds the lock of this byte: the client's, an
  // attendant's, or a worker's. One system call of 1 to 2 us.
  bool PeerAlive(int64_t lock_byte) const {
    return file_.lock().HeldByOther(lock_byte);
  }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return file_.mapping();
  }
  const std::string& name() const { return file_.name(); }
  // Its handle() is for WorkerSide::Attach in this process's children.
  const SharedRegion& memory() const { return file_.memory(); }

  // The frame ring, for a FrameWriter of frame_geometry(); empty if the region
  // has none. Its header is written, and its slots are aligned.
  std::span<std::byte> frame_ring() const;
  const FrameGeometry& frame_geometry() const { return frames_.geometry; }
  // Whether a reader of the frames is attached. One system call of 1 to 2 us.
  bool FramesWatched() const;

  // The table of fields, as planned; empty if the region has none.
  const std::vector<FieldRecord>& fields() const { return fields_; }
  // The workers' rows, as planned; empty if the region has no workers.
  const std::vector<WorkerRows>& workers() const { return workers_; }

 private:
  // The planned values; other processes can change the region's copy.
  struct FrameRing {
    uint64_t offset = 0;
    uint64_t bytes = 0;  // 0: none
    FrameGeometry geometry = {.capacity = 0};
  };

  OwnedRegion(NamedFile file, const FrameRing& frames,
              std::vector<FieldRecord> fields, std::vector<WorkerRows> workers)
      : file_(std::move(file)),
        frames_(frames),
        fields_(std::move(fields)),
        workers_(std::move(workers)) {}

  absl::Status LinkName();

  NamedFile file_;
  bool any_free_ = false;  // the name: "tandem", or a free one like it
  FrameRing frames_;
  std::vector<FieldRecord> fields_;
  std::vector<WorkerRows> workers_;
};

}  // namespace tandem

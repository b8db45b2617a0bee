// OwnedRegion: the engine's region, from birth to death.
//
// Data flow: RegionSpec -> NamedFile, filled -> Link -> clients find it ->
// destruction unlinks it.
// Ownership: one engine process.
//
//   absl::StatusOr<OwnedRegion> region = OwnedRegion::Create("demo", spec, {});
//   ... fill region->mapping() ...
//   absl::Status linked = region->Link();

#ifndef TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/frame_geometry.h"
#include "transport/memory/named_file.h"
#include "transport/memory/region_mapping.h"
#include "transport/memory/region_plan.h"

namespace tandem {

struct RegionOptions {
  bool group_access = false;  // mode 0660 instead of 0600
};

// Move-only. Legal order: Create, then Link once, then anything. In a forked
// child nothing is unlinked and every question is answered with false.
class OwnedRegion {
 public:
  // Removes this user's dead regions, then makes one without a name: memory
  // reserved and touched, engine lock held, constant header fields written, all
  // else zero. Errors, each leaving nothing behind:
  //   kInvalidArgument     name or sizes
  //   kAlreadyAttached     a live engine has the name (its label pid is named)
  //   kOutOfSharedMemory   /dev/shm or memory has no room: needed, available
  //   kAccessDenied        the name is another user's; the text has it
  static absl::StatusOr<OwnedRegion> Create(absl::string_view name,
                                            const RegionSpec& spec,
                                            const RegionOptions& options);

  OwnedRegion(OwnedRegion&&) noexcept = default;

  // Gives it its name. kAlreadyAttached if another engine was faster.
  absl::Status Link();

  // As NamedFile::RestoreName.
  void RestoreName() const { file_.RestoreName(); }

  // As NamedFile::RemoveName.
  void RemoveName() const { file_.RemoveName(); }

  // False in a forked child, and once moved from.
  bool IsOurs() const { return file_.IsOurs(); }
  bool ClientAlive() const { return file_.lock().HeldByOther(kClientLockByte); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return file_.mapping();
  }
  const std::string& name() const { return file_.name(); }

  // The frame ring, whose header is written already, for a FrameWriter of
  // frame_geometry(); empty without one. Its slots are aligned.
  std::span<std::byte> frame_ring() const;
  const FrameGeometry& frame_geometry() const { return frames_.geometry; }
  // Whether a reader of the frames is there. One system call of 1 to 2 us.
  bool FramesWatched() const;

 private:
  // As planned: the region's copy is within reach of others.
  struct FrameRing {
    uint64_t offset = 0;
    uint64_t bytes = 0;  // 0: none
    FrameGeometry geometry = {.capacity = 0};
  };

  OwnedRegion(NamedFile file, const FrameRing& frames)
      : file_(std::move(file)), frames_(frames) {}

  NamedFile file_;
  FrameRing frames_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_

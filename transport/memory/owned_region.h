// OwnedRegion: the engine's region, from birth to death.
//
// Data flow: RegionSpec -> unnamed file, reserved, mapped, locked, filled ->
// Link -> clients find it -> destruction unlinks it.
// Ownership: one engine process. Nobody ever sees half a region, since it gets
// its name last; nobody takes a living one, since its lock is held from before
// it has a name until the process is gone.
//
//   absl::StatusOr<OwnedRegion> region = OwnedRegion::Create("demo", spec, {});
//   ... fill region->mapping() ...
//   absl::Status linked = region->Link();

#ifndef TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/region_lock.h"
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
  //   kAccessDenied        the name is another user's (who is named)
  static absl::StatusOr<OwnedRegion> Create(absl::string_view name,
                                            const RegionSpec& spec,
                                            const RegionOptions& options);

  OwnedRegion(OwnedRegion&&) noexcept = default;
  OwnedRegion& operator=(OwnedRegion&& other) noexcept;
  ~OwnedRegion();

  // Gives it its name. kAlreadyAttached if another engine was faster.
  absl::Status Link();

  // Puts the name back if somebody unlinked it (Python's resource tracker does,
  // at the exit of a process that attached without track=False). Leaves a name
  // alone that leads elsewhere by now. One system call when all is well;
  // allocates nothing.
  void RestoreName() const;

  // Takes its names away, as destruction does; nothing else is changed, and the
  // client goes on. From any thread. Does nothing in a forked child.
  void RemoveName() const;

  // False in a forked child, and once moved from.
  bool IsOurs() const;
  bool ClientAlive() const { return lock_.HeldByOther(kClientLockByte); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }
  const std::string& name() const { return name_; }

 private:
  OwnedRegion(std::string name, UniqueFd file, RegionLock lock,
              std::shared_ptr<const RegionMapping> mapping);
  void Unlink();

  std::string name_;
  std::string path_;
  std::string spare_path_;
  UniqueFd file_;
  RegionLock lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  uint32_t born_in_;  // ForkCount() of the owner
  bool linked_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_OWNED_REGION_H_

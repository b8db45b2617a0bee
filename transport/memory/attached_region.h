// AttachedRegion: a client's hold on an engine's region.
//
// Data flow: a name -> a file with a live engine -> a checked header -> mapped.
// Ownership: one client process; the region itself stays the engine's.
//
//   absl::StatusOr<AttachedRegion> region = AttachedRegion::Open("demo");
//   if (!region->AcquireClientLock()) return AlreadyAttached();
//   const float* obs = region->mapping()->At<float>(region->plan().obs_offset);

#ifndef TANDEM_TRANSPORT_MEMORY_ATTACHED_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_ATTACHED_REGION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"
#include "transport/memory/region_plan.h"

namespace tandem {

// Move-only.
class AttachedRegion {
 public:
  // Maps the region of that name. Makes system calls; does not wait. Errors:
  // those of FindRegion.
  static absl::StatusOr<AttachedRegion> Open(absl::string_view name);

  // A copy of its header only, without mapping it. Errors: as Open.
  static absl::StatusOr<LrbcHeader> Peek(absl::string_view name);

  // Takes the one client's lock; false if another client holds it.
  bool AcquireClientLock();
  bool HoldsClientLock() const { return holds_client_lock_; }
  bool EngineAlive() const { return lock_.HeldByOther(kEngineLockByte); }
  // Gives the place free; the mapping stays. Safe twice.
  void ReleaseClientLock();

  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }
  // The header as it was checked: offsets and sizes are taken from here only,
  // since the one in the mapping can change under us.
  const LrbcHeader& plan() const { return plan_; }

 private:
  AttachedRegion(RegionLock lock, std::shared_ptr<const RegionMapping> mapping,
                 const LrbcHeader& plan);

  RegionLock lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  LrbcHeader plan_;
  bool holds_client_lock_ = false;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_ATTACHED_REGION_H_

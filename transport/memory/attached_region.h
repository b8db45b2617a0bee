// AttachedRegion: a client's hold on an engine's region. FoundRegion: a live
// engine's region, checked, not mapped.
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
#include "schema/layout/lrbc.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"
#include "transport/memory/region_plan.h"

namespace tandem {

struct FoundRegion {
  UniqueFd fd;  // open for reading and writing
  RegionLock lock;
  LrbcHeader plan;  // a copy, checked
};

// Makes system calls; does not wait; leaves nothing behind in the region.
// Errors: OpenSharedFile's, CheckTrust's, and
//   kNotReady        no live engine serves it, or it is too short to be one yet
//   kLayoutMismatch  it is not a region that this version understands
absl::StatusOr<FoundRegion> FindRegion(absl::string_view name);

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
  // Releases the client lock; the mapping stays. Safe twice.
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

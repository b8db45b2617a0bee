// AttachedRegion: an engine's region, mapped by a client. FoundRegion: a live
// engine's region, checked, not mapped.
//
// Data flow: a name -> a file with a live engine -> a checked header, table of
// fields and workers' rows -> mapped. Ownership: one client process owns the
// object; the engine owns the region.
//
//   absl::StatusOr<AttachedRegion> region = AttachedRegion::Open("demo");
//   if (!region->AcquireLock(kClientLockByte)) return AlreadyAttached();
//   const float* obs = region->mapping()->At<float>(region->plan().obs_offset);

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/shared_region.h"
#include "base/os/side_locks.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/region_plan.h"
#include "transport/region.h"

namespace tandem {

// The checked copies of a region's constant parts.
struct RegionParts {
  LrbcHeader plan;                      // the header
  std::vector<FieldRecord> fields;      // as AttachedRegion's
  std::vector<WorkerRows> workers;      // the same
  std::vector<FieldRecord> gpu_arrays;  // the same
};

// Reads them without the region's lock. Makes system calls; does not wait.
// kLayoutMismatch.
absl::StatusOr<RegionParts> ReadRegionParts(const SharedRegion& memory);

struct FoundRegion {
  SharedRegion memory;  // open for reading and writing
  SideLocks lock;
  RegionParts parts;
};

// Makes system calls; does not wait; changes nothing in the region. Errors:
// those of SharedRegion::Open and CheckTrust, and
//   kNotReady        no live engine serves the region, or the file is too short
//   kLayoutMismatch  not a region of this version, or its table of fields, its
//                    workers' rows or its table of GPU arrays are invalid
absl::StatusOr<FoundRegion> FindRegion(absl::string_view name);

// Move-only.
class AttachedRegion {
 public:
  // Maps the region with this name. Makes system calls; does not wait. Errors:
  // those of FindRegion.
  static absl::StatusOr<AttachedRegion> Open(absl::string_view name);

  // Takes a lock: kClientLockByte, or the first byte of an attendant's slot.
  // Returns false if another process holds it.
  bool AcquireLock(int64_t byte) {
    holds_lock_ = lock_.TryAcquire(byte);
    return holds_lock_;
  }
  bool HoldsLock() const { return holds_lock_; }
  bool EngineAlive() const { return lock_.HeldByOther(kEngineLockByte); }
  // Whether another process holds an attendant's lock. At most four system
  // calls.
  bool AnyAttendantAlive() const;
  // Releases the lock; the mapping stays. A second call has no effect.
  void ReleaseLock() {
    holds_lock_ = false;
    lock_.Release();
  }

  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }
  // The checked copy of the header. All offsets and sizes come from it, since
  // the peer may change the header in the mapping.
  const LrbcHeader& plan() const { return parts_.plan; }
  // The checked copy of the table of fields, for the same reason; empty if the
  // region has none.
  const std::vector<FieldRecord>& fields() const { return parts_.fields; }
  // The checked copy of the workers' rows; empty if the region has no workers.
  const std::vector<WorkerRows>& workers() const { return parts_.workers; }
  // The checked copy of the table of arrays on a GPU; empty if the region has
  // none.
  const std::vector<FieldRecord>& gpu_arrays() const {
    return parts_.gpu_arrays;
  }
  // The owner of the region's memory, and so of its engine.
  const Owner& owner() const { return owner_; }

 private:
  AttachedRegion(FoundRegion found,
                 std::shared_ptr<const RegionMapping> mapping)
      : lock_(std::move(found.lock)),
        mapping_(std::move(mapping)),
        parts_(std::move(found.parts)),
        owner_(found.memory.owner()) {}

  SideLocks lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  RegionParts parts_;
  Owner owner_;
  bool holds_lock_ = false;
};

}  // namespace tandem

#include "transport/memory/attached_region.h"

#include <utility>

#include "transport/memory/found_region.h"

namespace tandem {

absl::StatusOr<AttachedRegion> AttachedRegion::Open(absl::string_view name) {
  absl::StatusOr<FoundRegion> found = FindRegion(name);
  if (!found.ok()) return found.status();
  absl::StatusOr<std::shared_ptr<const RegionMapping>> mapping =
      RegionMapping::Map(found->fd.get(), found->plan.region_size);
  if (!mapping.ok()) return mapping.status();
  return AttachedRegion(std::move(found->lock), *std::move(mapping),
                        found->plan);
}

absl::StatusOr<LrbcHeader> AttachedRegion::Peek(absl::string_view name) {
  absl::StatusOr<FoundRegion> found = FindRegion(name);
  if (!found.ok()) return found.status();
  return found->plan;
}

AttachedRegion::AttachedRegion(RegionLock lock,
                               std::shared_ptr<const RegionMapping> mapping,
                               const LrbcHeader& plan)
    : lock_(std::move(lock)), mapping_(std::move(mapping)), plan_(plan) {}

bool AttachedRegion::AcquireClientLock() {
  holds_client_lock_ = lock_.TryAcquire(kClientLockByte);
  return holds_client_lock_;
}

void AttachedRegion::ReleaseClientLock() {
  holds_client_lock_ = false;
  lock_.Release();
}

}  // namespace tandem

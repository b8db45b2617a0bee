#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "transport/region.h"

namespace tandem {

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::Map(
    const SharedRegion& memory, uint64_t bytes) {
  // The existing mappings of this process. Never destroyed: views may outlive
  // static objects.
  static auto* const mutex = new std::mutex;
  static auto* const mapped =
      new std::map<SharedRegion::Id, std::weak_ptr<const RegionMapping>>;
  constexpr auto kWrite = SharedRegion::Access::kWrite;
  const std::unique_lock<std::mutex> lock(*mutex, std::try_to_lock);
  // Another thread holds the mutex, or held it when this process was forked.
  if (!lock.owns_lock()) return MapAnew(memory, bytes, kWrite);
  std::erase_if(*mapped, [](const auto& entry) {
    return entry.second.expired();  // other memory may get its id
  });
  std::weak_ptr<const RegionMapping>& entry = (*mapped)[memory.id()];
  if (std::shared_ptr<const RegionMapping> living = entry.lock();
      living != nullptr && living->bytes() == bytes) {
    return living;
  }
  absl::StatusOr<std::shared_ptr<const RegionMapping>> mapping =
      MapAnew(memory, bytes, kWrite);
  if (mapping.ok()) entry = *mapping;
  return mapping;
}

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::MapReadOnly(
    const SharedRegion& memory, uint64_t bytes) {
  return MapAnew(memory, bytes, SharedRegion::Access::kRead);
}

absl::StatusOr<std::shared_ptr<const RegionMapping>> RegionMapping::MapAnew(
    const SharedRegion& memory, uint64_t bytes, SharedRegion::Access access) {
  TANDEM_ASSIGN_OR_RETURN(std::byte* const base, memory.Map(bytes, access));
  return std::shared_ptr<const RegionMapping>(new RegionMapping(base, bytes));
}

}  // namespace tandem

#include "engine_adapter/core/region_room.h"

#include "base/os/shared_region.h"
#include "transport/region.h"

namespace tandem {

absl::Status CheckRegionRoom(uint32_t num_envs, uint64_t obs_size,
                             uint64_t act_size) {
  RemoveDeadRegions();
  return SharedRegion::CheckRoom(
      num_envs * (2 * obs_size + act_size) * sizeof(float),
      {"the region", "use fewer environments"});
}

}  // namespace tandem

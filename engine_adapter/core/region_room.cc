#include "engine_adapter/core/region_room.h"

#include "transport/memory/dead_region.h"
#include "transport/memory/named_file.h"

namespace tandem {

absl::Status CheckRegionRoom(uint32_t num_envs, uint64_t obs_size,
                             uint64_t act_size) {
  RemoveDeadRegions();
  return NamedFile::CheckRoom(
      num_envs * (2 * obs_size + act_size) * sizeof(float),
      {"the region", "use fewer environments"});
}

}  // namespace tandem

// CheckRegionRoom: whether the region of a task's float32 rows has room.
//
// Data flow: a task's sizes -> CheckRegionRoom -> the environments, which may
// take minutes to make; the host reserves the region only after that.

#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tandem {

// Removes dead regions, then checks the region's largest rows: observations,
// final observations and actions. kOutOfSharedMemory: no room for them.
absl::Status CheckRegionRoom(uint32_t num_envs, uint64_t obs_size,
                             uint64_t act_size);

}  // namespace tandem

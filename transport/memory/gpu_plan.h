// The table of arrays in an engine's GPU allocation: the engine makes it, the
// client checks it.
//
// Data flow: the region's sizes -> PlanGpuArrays -> an allocation of GpuBytes
// -> GpuSpec, with its handles -> the region's header and table -> a client's
// copies -> CheckGpuArrays -> addresses in the client's own mapping.
//
//   GpuSpec spec = {.mode = GpuMode::kCudaIpc};
//   spec.arrays = PlanGpuArrays(region_spec);
//   ... allocate GpuBytes(spec.arrays, num_envs), fill in the handles ...

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/region_spec.h"

namespace tandem {

// Each array begins at a multiple of it in the allocation.
inline constexpr uint64_t kGpuAlignment = 256;

inline uint64_t GpuTableBytes(const LrbcHeader& header) {
  return uint64_t{header.gpu_array_count} * sizeof(FieldRecord);
}

// Returns the arrays of a region with these environments, with offsets: each
// observation and its final observation, the rewards as float32, and the images
// if `image_width` is not 0. Without float32 rows (obs_size 0) observations are
// those of `fields`, as RegionSpec has them.
std::vector<FieldRecord> PlanGpuArrays(uint32_t num_envs, uint32_t obs_size,
                                       std::span<const FieldSpec> fields,
                                       uint32_t image_width,
                                       uint32_t image_height);

// The bytes of an allocation with all of them.
uint64_t GpuBytes(std::span<const FieldRecord> arrays, uint32_t num_envs);

// What an engine with memory of its own exports.
GpuSpec GpuSpecOf(const GpuMemory& memory, uint32_t image_width,
                  uint32_t image_height);

// The role of the array at gpu_alloc_offset: each table has one.
inline FieldRole MainGpuRole(GpuMode mode) {
  return mode == GpuMode::kVulkanExternal ? FieldRole::kImages
                                          : FieldRole::kObs;
}

// Checks a copy of the table and the header's members, for any bytes: each
// record alone, that each array is inside the allocation and overlaps no other,
// and a final observation for each observation; with kVulkanExternal images
// alone, and a valid GpuFileHandle. Appends sentences, at most 16.
void CheckGpuArrays(const LrbcHeader& header,
                    std::span<const FieldRecord> arrays,
                    std::vector<std::string>* problems);

}  // namespace tandem

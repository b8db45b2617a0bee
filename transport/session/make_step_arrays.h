// MakeStepArrays: a region's arrays, from its checked header.
//
// Data flow: a mapping, and private copies of header and table -> StepArrays.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/step_arrays.h"

namespace tandem {

// `record` must come from PlanFields, or have passed CheckHeader.
inline FieldArray MakeFieldArray(const RegionMapping& mapping,
                                 uint32_t num_envs, const FieldRecord& record) {
  return {.role = record.role,
          .type = record.type,
          .shape = {record.shape, record.shape + record.dims},
          .path = std::string(PathOf(record)),
          .row_bytes = FieldRowBytes(record),
          .data = {mapping.At<std::byte>(record.offset),
                   FieldBytes(record, num_envs)}};
}

// `plan` and `records` must come from PlanRegion and PlanFields, or have passed
// CheckHeader. They are never those inside the mapping, which the peer can
// change.
inline StepArrays MakeStepArrays(const RegionMapping& mapping,
                                 const LrbcHeader& plan,
                                 std::span<const FieldRecord> records) {
  const size_t envs = plan.num_envs;
  std::vector<FieldArray> fields;
  fields.reserve(records.size());
  for (const FieldRecord& record : records) {
    fields.push_back(MakeFieldArray(mapping, plan.num_envs, record));
  }
  const auto floats = [&](uint64_t offset, size_t count) {
    return std::span<float>(mapping.At<float>(offset), count);
  };
  const auto flags = [&](uint64_t offset) {
    return std::span<uint8_t>(mapping.At<uint8_t>(offset), envs);
  };
  // Without the section its sizes are 0.
  const InfosPlan infos = InfosOf(plan);
  const size_t info_values = envs * plan.info_size;
  const ImagesPlan images = ImagesOf(plan);
  return {.num_envs = plan.num_envs,
          .obs_size = plan.obs_size,
          .act_size = plan.act_size,
          .info_size = plan.info_size,
          .obs = floats(plan.obs_offset, envs * plan.obs_size),
          .actions = floats(plan.act_offset, envs * plan.act_size),
          .rewards = floats(plan.rewards_offset, envs),
          .dones = flags(plan.dones_offset),
          .truncateds = flags(plan.truncateds_offset),
          .terminateds = flags(plan.terminateds_offset),
          .resets = flags(plan.resets_offset),
          .final_obs = floats(plan.final_obs_offset, envs * plan.obs_size),
          .reset_seeds = std::span<uint64_t>(
              mapping.At<uint64_t>(plan.reset_seeds_offset), envs),
          .infos = {mapping.At<double>(infos.infos), info_values},
          .final_infos = {mapping.At<double>(infos.final_infos), info_values},
          .images = {mapping.At<uint8_t>(images.images), images.bytes},
          .final_images = {mapping.At<uint8_t>(images.final_images),
                           images.final_bytes},
          .fields = std::move(fields)};
}

}  // namespace tandem

// StepArrays: a region's arrays for steps, as typed spans. FieldArray: one of
// its fields.
//
// Data flow: the client writes actions, resets, reset_seeds, and the fields of
// actions; the engine writes all others.
// Ownership: views into a mapping, valid as long as the mapping. Between a send
// and its recv they belong to the engine, otherwise to the client. A copy
// allocates if there are fields.
//
//   const StepArrays& arrays = client.arrays();
//   arrays.obs[env * arrays.obs_size + i]

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schema/layout/field.h"

namespace tandem {

// A field of a region, with its type, its shape and its memory. Who writes it
// depends on its role (FieldRole). The members but `data` are owned copies.
//
//   const FieldArray* image = arrays.Find(FieldRole::kObs, "/image");
//   std::span<uint8_t> all = image->Values<uint8_t>();  // [num_envs, *shape]
struct FieldArray {
  FieldRole role = FieldRole::kObs;
  FieldType type = FieldType::kFloat32;
  std::vector<uint32_t> shape = {};  // of one environment; {}: one number
  std::string path = {};
  size_t row_bytes = 0;            // of one environment
  std::span<std::byte> data = {};  // [num_envs, *shape]

  // One environment's value.
  std::span<std::byte> Row(size_t env) const {
    return data.subspan(env * row_bytes, row_bytes);
  }
  // All elements, as `T`, which must have the size of `type`'s elements.
  template <typename T>
  std::span<T> Values() const {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
};

// Returns the field of this role and path; nullptr if there is none.
inline const FieldArray* FindField(std::span<const FieldArray> fields,
                                   FieldRole role, absl::string_view path) {
  const auto found = std::ranges::find_if(fields, [&](const FieldArray& field) {
    return field.role == role && field.path == path;
  });
  return found == fields.end() ? nullptr : &*found;
}

struct StepArrays {
  uint32_t num_envs = 0;
  uint32_t obs_size = 0;
  uint32_t act_size = 0;
  uint32_t info_size = 0;
  std::span<float> obs;             // [num_envs, obs_size]
  std::span<float> actions;         // [num_envs, act_size]
  std::span<float> rewards;         // [num_envs]; so are the next ones
  std::span<uint8_t> dones;         // 1: the episode is over
  std::span<uint8_t> truncateds;    // 1: the episode was cut short
  std::span<uint8_t> terminateds;   // 1: a terminal state was reached
  std::span<uint8_t> resets;        // kReset* bits
  std::span<float> final_obs;       // [num_envs, obs_size]
  std::span<uint64_t> reset_seeds;  // valid if resets has kResetSeeded
  std::span<double> infos;          // [num_envs, info_size]
  std::span<double> final_infos;    // [num_envs, info_size]
  // [num_envs, height, width, 3], the top row first; empty without images.
  std::span<uint8_t> images;
  std::span<uint8_t> final_images = {};  // the same, beside final_obs
  // In the order of the region's table; empty without one. Float32 rows are
  // fields, too: `data` is then the memory of obs, final_obs or actions.
  std::vector<FieldArray> fields = {};

  // Returns the field of this role and path; nullptr if there is none.
  const FieldArray* Find(FieldRole role, absl::string_view path) const {
    return FindField(fields, role, path);
  }
};

}  // namespace tandem

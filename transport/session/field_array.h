// FieldArray: a field of a region, with its type, its shape and its memory.
//
// Data flow: who writes a field depends on its role (FieldRole).
// Ownership: `data` is a view into a mapping, valid as long as the mapping. The
// other members are owned copies. Between a send and its recv the memory
// belongs to the engine, otherwise to the client.
//
//   const FieldArray* image = arrays.Find(FieldRole::kObs, "/image");
//   std::span<uint8_t> all = image->Values<uint8_t>();  // [num_envs, *shape]
//   std::span<std::byte> one = image->Row(env);

#ifndef TANDEM_TRANSPORT_SESSION_FIELD_ARRAY_H_
#define TANDEM_TRANSPORT_SESSION_FIELD_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schema/layout/field.h"
#include "transport/memory/region_mapping.h"

namespace tandem {

struct FieldArray {
  FieldRole role = FieldRole::kObs;
  FieldType type = FieldType::kFloat32;
  std::vector<uint32_t> shape = {};  // of one environment; {}: one number
  std::string path = {};
  size_t row_bytes = 0;            // of one environment
  std::span<std::byte> data = {};  // [num_envs, *shape]

  // `record` must come from PlanFields, or have passed CheckHeader.
  static FieldArray Of(const RegionMapping& mapping, uint32_t num_envs,
                       const FieldRecord& record) {
    const absl::string_view path = PathOf(record);
    return {.role = record.role,
            .type = record.type,
            .shape = {record.shape, record.shape + record.dims},
            .path = std::string(path),
            .row_bytes = FieldRowBytes(record),
            .data = {mapping.At<std::byte>(record.offset),
                     FieldBytes(record, num_envs)}};
  }

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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_FIELD_ARRAY_H_

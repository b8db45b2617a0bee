// The dtypes of tandem.h, and the types of fields.
//
//   DtypeOf(FieldType::kUint8);     // TANDEM_UINT8
//   FieldTypeOf(TANDEM_BOOL);       // FieldType::kBool

#ifndef TANDEM_SDK_DTYPES_H_
#define TANDEM_SDK_DTYPES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "schema/layout/field.h"
#include "sdk/tandem.h"

namespace tandem {

// By FieldType, from 1.
inline constexpr std::array<uint32_t, kFieldTypes.size()> kDtypes = {
    TANDEM_BOOL,  TANDEM_UINT8,   TANDEM_INT8,    TANDEM_UINT16,
    TANDEM_INT16, TANDEM_UINT32,  TANDEM_INT32,   TANDEM_UINT64,
    TANDEM_INT64, TANDEM_FLOAT16, TANDEM_FLOAT32, TANDEM_FLOAT64};

// `type` is known.
constexpr uint32_t DtypeOf(FieldType type) {
  return kDtypes[static_cast<size_t>(type) - 1];
}

// nullopt: no dtype of tandem.h.
constexpr std::optional<FieldType> FieldTypeOf(uint32_t dtype) {
  const auto found = std::ranges::find(kDtypes, dtype);
  if (found == kDtypes.end()) return std::nullopt;
  return static_cast<FieldType>(found - kDtypes.begin() + 1);
}

}  // namespace tandem

#endif  // TANDEM_SDK_DTYPES_H_

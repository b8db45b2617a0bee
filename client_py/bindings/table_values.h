// TableValues: converts a FlatBuffers table to a Python dict. PackTable: the
// reverse.
//
// Data flow: verified bytes -> read by flatc's type table -> dict -> checked by
// the type table -> builder.
// Ownership: none; needs the GIL. Results and arguments are copied.

#pragma once

#include <pybind11/pybind11.h>

#include "absl/strings/string_view.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"

namespace tandem {

// Returns all fields by name. envelope_values.h has the conversions. `table`
// must be verified and contain no union.
pybind11::dict TableValues(const flatbuffers::Table* table,
                           const flatbuffers::TypeTable* type);

// Calls `use` with a zero of the C++ type of this elementary type. Returns
// false, without a call, for texts, tables and structs.
template <typename Use>
bool WithNumberType(flatbuffers::ElementaryType type, Use use) {
  switch (type) {
    case flatbuffers::ET_BOOL:
    case flatbuffers::ET_UTYPE:
    case flatbuffers::ET_UCHAR:
      return use(uint8_t{}), true;
    case flatbuffers::ET_CHAR:
      return use(int8_t{}), true;
    case flatbuffers::ET_SHORT:
      return use(int16_t{}), true;
    case flatbuffers::ET_USHORT:
      return use(uint16_t{}), true;
    case flatbuffers::ET_INT:
      return use(int32_t{}), true;
    case flatbuffers::ET_UINT:
      return use(uint32_t{}), true;
    case flatbuffers::ET_LONG:
      return use(int64_t{}), true;
    case flatbuffers::ET_ULONG:
      return use(uint64_t{}), true;
    case flatbuffers::ET_FLOAT:
      return use(float{}), true;
    case flatbuffers::ET_DOUBLE:
      return use(double{}), true;
    case flatbuffers::ET_STRING:
    case flatbuffers::ET_SEQUENCE:
      break;
  }
  return false;
}

// Returns the type of a field's table, struct or enum; nullptr for other types.
inline const flatbuffers::TypeTable* RefOf(const flatbuffers::TypeTable* type,
                                           flatbuffers::TypeCode code) {
  return code.sequence_ref < 0 ? nullptr : type->type_refs[code.sequence_ref]();
}

// Returns the table's offset in `builder`. envelope_values.h has the
// conversions. Zeros are written, too. Raises InvalidArgument and
// MessageTooLarge; the message has the field's path, from `name` on. After an
// error the builder must not be used.
flatbuffers::Offset<void> PackTable(pybind11::handle fields,
                                    const flatbuffers::TypeTable* type,
                                    absl::string_view name,
                                    absl::string_view region,
                                    flatbuffers::FlatBufferBuilder* builder);

}  // namespace tandem

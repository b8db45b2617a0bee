// TableValues: a FlatBuffers table as a Python dict.
//
// Data flow: verified bytes, read by the type table that flatc made -> dict.
// Ownership: none; needs the GIL. What is returned is copied.
//
//   py::dict fields = TableValues(table, rpc::EntityInfoTypeTable());

#ifndef TANDEM_CLIENT_PY_BINDINGS_TABLE_VALUES_H_
#define TANDEM_CLIENT_PY_BINDINGS_TABLE_VALUES_H_

#include <pybind11/pybind11.h>

#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"

namespace tandem {

// All fields by their names: see the table of envelope_values.h. `table` is
// verified, and no union lies in it.
pybind11::dict TableValues(const flatbuffers::Table* table,
                           const flatbuffers::TypeTable* type);

// Calls `use` with a value of the C++ type of a number of this elementary type.
// Returns false, without a call, for texts, tables and structs.
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

// The type of a field's table, struct or enum; nullptr: it has another
// type.
inline const flatbuffers::TypeTable* RefOf(const flatbuffers::TypeTable* type,
                                           flatbuffers::TypeCode code) {
  return code.sequence_ref < 0 ? nullptr : type->type_refs[code.sequence_ref]();
}

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_TABLE_VALUES_H_

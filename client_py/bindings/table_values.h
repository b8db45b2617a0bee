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

// The type of a field's table, struct or enum; nullptr: it is none of these.
inline const flatbuffers::TypeTable* RefOf(const flatbuffers::TypeTable* type,
                                           flatbuffers::TypeCode code) {
  return code.sequence_ref < 0 ? nullptr : type->type_refs[code.sequence_ref]();
}

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_TABLE_VALUES_H_

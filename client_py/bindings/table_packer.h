// PackTable: a Python dict as a FlatBuffers table.
//
// Data flow: dict, checked by the type table that flatc made -> builder.
// Ownership: none; needs the GIL. Arguments are copied.
//
//   flatbuffers::FlatBufferBuilder builder;
//   PackTable(fields, rpc::GetEntityRequestTypeTable(), "GetEntityRequest",
//             region, &builder);

#ifndef TANDEM_CLIENT_PY_BINDINGS_TABLE_PACKER_H_
#define TANDEM_CLIENT_PY_BINDINGS_TABLE_PACKER_H_

#include <pybind11/pybind11.h>

#include "absl/strings/string_view.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"

namespace tandem {

// Returns its offset in `builder`; see the table of envelope_values.h. Zeros
// are written as well. Raises InvalidArgument and MessageTooLarge, whose
// messages name the field below `name`; do not use the builder afterwards.
flatbuffers::Offset<void> PackTable(pybind11::handle fields,
                                    const flatbuffers::TypeTable* type,
                                    absl::string_view name,
                                    absl::string_view region,
                                    flatbuffers::FlatBufferBuilder* builder);

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_TABLE_PACKER_H_

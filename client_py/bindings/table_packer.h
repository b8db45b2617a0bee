// PackTable: converts a Python dict to a FlatBuffers table.
//
// Data flow: dict -> checked by flatc's type table -> builder.
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

#endif  // TANDEM_CLIENT_PY_BINDINGS_TABLE_PACKER_H_

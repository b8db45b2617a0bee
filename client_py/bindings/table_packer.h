// PackTable: a Python dict as a FlatBuffers table.
//
// Data flow: dict, checked by the type table that flatc made -> builder.
// Ownership: none; needs the GIL. What is given is copied.
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

// Its offset in `builder`; see the table of envelope_values.h. What is given is
// written, also where it is 0. Raises InvalidArgument and MessageTooLarge,
// whose messages name the field below `name`; the builder is of no use then.
flatbuffers::Offset<void> PackTable(pybind11::handle fields,
                                    const flatbuffers::TypeTable* type,
                                    absl::string_view name,
                                    absl::string_view region,
                                    flatbuffers::FlatBufferBuilder* builder);

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_TABLE_PACKER_H_

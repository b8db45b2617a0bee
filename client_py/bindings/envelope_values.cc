#include "client_py/bindings/envelope_values.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/table_values.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"
#include "schema/messages/rpc_methods.h"

namespace tandem {
namespace py = pybind11;
namespace {

using flatbuffers::TypeTable;

const TypeTable* TableOf(rpc::Payload payload) {
  // The union's own table has no row for NONE's table.
  const TypeTable* const all = rpc::PayloadTypeTable();
  for (size_t i = 0; i < all->num_elems; ++i) {
    if (all->values[i] == static_cast<int64_t>(payload)) {
      return RefOf(all, all->type_codes[i]);
    }
  }
  return nullptr;
}

}  // namespace

PackedCall PackRequest(rpc::MethodId method, py::handle fields,
                       absl::string_view region) {
  const rpc::Payload request = PayloadsOf(method).request;
  const TypeTable* const type = TableOf(request);
  if (type == nullptr) {
    RaiseInvalid(
        absl::StrCat("method: expected a tandem.services.MethodId, found ",
                     static_cast<int>(method)),
        region);
  }
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<void> payload =
      PackTable(fields, type, rpc::EnumNamePayload(request), region, &builder);
  return {&builder, method, request, payload};
}

py::dict PayloadValues(const rpc::Envelope& envelope) {
  return TableValues(static_cast<const flatbuffers::Table*>(envelope.payload()),
                     TableOf(envelope.payload_type()));
}

}  // namespace tandem

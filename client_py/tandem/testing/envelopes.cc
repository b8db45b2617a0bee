// tandem.testing.envelopes: the binding's conversion of dicts to bytes and
// back.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "client_py/bindings/envelope_values.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace py = pybind11;
namespace {

// Returns a request as bytes for the RPC ring.
py::bytes Pack(uint16_t method, const py::object& fields) {
  const PackedCall call =
      PackRequest(static_cast<rpc::MethodId>(method), fields, "");
  return {reinterpret_cast<const char*>(call.bytes().data()),
          call.bytes().size()};
}

// Returns the payload of an envelope.
py::dict Read(const std::string& bytes) {
  std::vector<uint64_t> words(bytes.size() / 8 + 1);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(words.data()),
                                 bytes.size());
  if (!rpc::VerifyEnvelopeBuffer(verifier)) {
    throw std::invalid_argument("expected an envelope");
  }
  return PayloadValues(*rpc::GetEnvelope(words.data()));
}

}  // namespace
}  // namespace tandem

PYBIND11_MODULE(envelopes, module) {
  module.def("pack", &tandem::Pack);
  module.def("read", &tandem::Read);
}

// Envelopes as Python dicts with the schema's field names.
//
// Data flow: dict -> PackRequest -> an envelope for RpcClient; a verified
// answer -> PayloadValues -> dict. The type tables of flatc drive both: a new
// field of the schema needs no code here.
// Ownership: none; all calls need the GIL. What is returned is copied.
//
//   PackedCall call = PackRequest(rpc::MethodId::GetEntity, fields, name);
//   py::dict answer = PayloadValues(message.envelope());
//
//  schema             from Python                   to Python
//  number, enum       int, float                    int, float
//  bool               bool, numpy.bool_             bool
//  string             str                           str
//  Vec3, Quat         3 or 4 numbers                float32[3], float32[4]
//  [float]            numbers, float[n]             float32[n]
//  [uint] and others  integers, int[n]              uint32[n], ...
//  table              mapping                       dict
//  [string], [table]  sequence                      list
//
// None is the same as no field. For Python an absent number is 0, texts and
// lists are empty, a table or struct is None. (A test checks that the fields of
// answers have no other defaults.)

#ifndef TANDEM_CLIENT_PY_BINDINGS_ENVELOPE_VALUES_H_
#define TANDEM_CLIENT_PY_BINDINGS_ENVELOPE_VALUES_H_

#include <pybind11/pybind11.h>

#include "absl/strings/string_view.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/rpc/packed_call.h"

namespace tandem {

// A call. Raises InvalidArgument, which names the field, what it expects and
// what was found: an unknown field, another type, out of range, a struct of
// another length, text that is no Unicode; MessageTooLarge above an
// engine's limit. `region` is for messages.
PackedCall PackRequest(rpc::MethodId method, pybind11::handle fields,
                       absl::string_view region);

// The payload's fields. The envelope is verified and has a payload.
pybind11::dict PayloadValues(const rpc::Envelope& envelope);

}  // namespace tandem

#endif  // TANDEM_CLIENT_PY_BINDINGS_ENVELOPE_VALUES_H_

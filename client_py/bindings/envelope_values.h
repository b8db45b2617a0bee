// Envelopes as Python dicts with the schema's field names.
//
// Data flow: dict -> PackRequest -> an envelope for RpcClient; a verified
// answer -> PayloadValues -> dict. The type tables of flatc drive both: a new
// field of the schema needs no code here.
// Ownership: none; all calls need the GIL. Results are copies.
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
// None means no field. In an answer, an absent number is 0, an absent text or
// list is empty, an absent table or struct is None. (A test checks that answers
// have no other defaults.)

#pragma once

#include <pybind11/pybind11.h>

#include "absl/strings/string_view.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"

namespace tandem {

// Returns a call. Raises InvalidArgument, with the field, the expected and the
// found value: unknown field, wrong type, value out of range, wrong length of a
// struct, invalid Unicode. Raises MessageTooLarge above an engine's limit.
// `region` is for messages.
PackedCall PackRequest(rpc::MethodId method, pybind11::handle fields,
                       absl::string_view region);

// Returns the payload's fields. The envelope must be verified and must have a
// payload.
pybind11::dict PayloadValues(const rpc::Envelope& envelope);

}  // namespace tandem

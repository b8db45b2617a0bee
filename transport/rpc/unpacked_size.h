// What an envelope takes once it is unpacked into plain structs.
//
// Data flow: a verified envelope -> whether EnvelopeT may be made of it.
//
//   if (UnpacksWithin(envelope, 1 << 20)) envelope.UnPackTo(&plain);
//
// In a FlatBuffer many fields may point to one string or table. The verifier
// allows that; unpacking copies it each time, so that a hundred kilobytes may
// become gigabytes.

#ifndef TANDEM_TRANSPORT_RPC_UNPACKED_SIZE_H_
#define TANDEM_TRANSPORT_RPC_UNPACKED_SIZE_H_

#include <cstdint>

#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Whether the envelope, which was verified, takes no more memory than that once
// unpacked; a generous estimate. Allocates nothing; takes as long as it has
// tables, strings and vectors, and no longer once it is known.
bool UnpacksWithin(const rpc::Envelope& envelope, uint64_t max_bytes);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_UNPACKED_SIZE_H_

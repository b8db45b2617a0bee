// The memory that an envelope takes after unpacking into plain structs.
//
// Data flow: a verified envelope -> whether EnvelopeT may be made from it.
//
// In a FlatBuffer many fields may refer to one string or table. The verifier
// accepts that. Unpacking copies it each time, so a hundred kilobytes may
// become gigabytes.

#pragma once

#include <cstdint>

#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Whether unpacking the verified envelope takes at most `max_bytes`; a high
// estimate. Allocates nothing. Its time is proportional to the number of
// tables, strings and vectors; it stops at the limit.
bool UnpacksWithin(const rpc::Envelope& envelope, uint64_t max_bytes);

}  // namespace tandem

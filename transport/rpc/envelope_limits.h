// The size that both ends of the RPC rings allow for an envelope in pieces.
//
// Data flow: EnvelopeWriter refuses a larger one; EnvelopeReader drops it.
//
//   if (bytes > kMaxEnvelopeBytes) return ErrorCode::kMessageTooLarge;

#ifndef TANDEM_TRANSPORT_RPC_ENVELOPE_LIMITS_H_
#define TANDEM_TRANSPORT_RPC_ENVELOPE_LIMITS_H_

#include <cstddef>

namespace tandem {

inline constexpr size_t kMaxEnvelopeBytes = size_t{64} * 1024 * 1024;

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_ENVELOPE_LIMITS_H_

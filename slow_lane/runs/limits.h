// Limits of the calls between daemon, proxies and clients.

#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

// The maximum of each message; clients have the same limit.
inline constexpr int kMaxMessageBytes = v1::MAX_MESSAGE_BYTES;

// The maximum of an event that is published by gRPC. It is lower than
// kMaxMessageBytes by the other content of a message with this event. So a
// single large event fits into a message, and watchers can always continue. (A
// printed line has at most 16 MiB.)
inline constexpr int kMaxEventBytes = kMaxMessageBytes - (8 << 20);

// The socket at which proxies reach the daemon, in the data folder, which is
// the working directory.
inline constexpr char kSocketFile[] = "daemon.sock";

// The maximum of a proxy's unacknowledged batches.
inline constexpr int kLinkWindow = 8;

// The maxima of a frame from another machine: 3840 x 2160 pixels, and what
// viewers parse.
inline constexpr uint64_t kMaxRelayedPixels = uint64_t{8} << 20;
inline constexpr size_t kMaxRelayedMetadata = size_t{64} << 10;  // bytes

}  // namespace tandem::slow_lane

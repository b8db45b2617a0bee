// Limits of the calls between daemon, proxies and clients.
//
//   builder.SetMaxReceiveMessageSize(kMaxMessageBytes);

#ifndef TANDEM_SLOW_LANE_WIRE_LIMITS_H_
#define TANDEM_SLOW_LANE_WIRE_LIMITS_H_

#include "schema/protos/slow_lane.pb.h"

namespace tandem::slow_lane {

// Of each message; clients have the same limit.
inline constexpr int kMaxMessageBytes = v1::MAX_MESSAGE_BYTES;

// Of an event that is published by gRPC. Below the above by what may be in one
// message beside it when it is read again: a lone large event must fit, or no
// watcher ever gets past it. (A printed line has 16 MiB at most.)
inline constexpr int kMaxEventBytes = kMaxMessageBytes - (8 << 20);

// Where proxies reach the daemon: in the data folder, which is the current one.
inline constexpr char kSocketFile[] = "daemon.sock";

// Unacknowledged batches that a proxy may have.
inline constexpr int kLinkWindow = 8;

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_WIRE_LIMITS_H_

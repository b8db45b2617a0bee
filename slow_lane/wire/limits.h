// What both ends of the slow lane's calls go by: daemon and proxies.
//
//   builder.SetMaxReceiveMessageSize(kMaxMessageBytes);

#ifndef TANDEM_SLOW_LANE_WIRE_LIMITS_H_
#define TANDEM_SLOW_LANE_WIRE_LIMITS_H_

namespace tandem::slow_lane {

// Of each message. tandem.telemetry has the same, and so have its users.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Of an event that is published by gRPC. Below the above by what may be in one
// message beside it when it is read again: a lone large event must fit, or no
// watcher ever gets past it. (A printed line has 16 MiB at most.)
inline constexpr int kMaxEventBytes = kMaxMessageBytes - (8 << 20);

// Where proxies reach the daemon: in the data folder, which is the current one.
inline constexpr char kSocketFile[] = "daemon.sock";

// Batches that a proxy may have on their way, unacknowledged.
inline constexpr int kLinkWindow = 8;

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_WIRE_LIMITS_H_

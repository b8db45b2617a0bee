// ClientArguments: how a run's proxy connects to the daemon.
//
//   grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
//                             ClientArguments());

#ifndef TANDEM_SLOW_LANE_WIRE_CLIENT_ARGUMENTS_H_
#define TANDEM_SLOW_LANE_WIRE_CLIENT_ARGUMENTS_H_

#include <grpcpp/support/channel_arguments.h>

#include "slow_lane/wire/limits.h"

namespace tandem::slow_lane {

inline grpc::ChannelArguments ClientArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A daemon that is stopped or hangs, or whose machine has died, answers no
  // ping: the call breaks. So does a stream on which nothing comes for long:
  // without the last of these, gRPC stops to ask after two pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 15'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A daemon that comes back is found at once.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_WIRE_CLIENT_ARGUMENTS_H_

// ToGrpc: absl::Status as gRPC's. Their codes are the same by design.

#ifndef TANDEM_SLOW_LANE_DAEMON_GRPC_STATUS_H_
#define TANDEM_SLOW_LANE_DAEMON_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace tandem::slow_lane {

inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_GRPC_STATUS_H_

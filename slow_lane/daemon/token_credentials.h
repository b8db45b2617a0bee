// TokenCredentials: gRPC's plaintext credentials, of which each call has to
// show a token in its metadata.
//
// Data flow: `authorization: Bearer TOKEN` of a call -> compared -> the
// service, or PERMISSION_DENIED with what to do. Ownership: gRPC's server, for
// as long as it takes connections.
//
//   builder.experimental().AddExternalConnectionAcceptor(
//       FROM_FD, TokenCredentials(token));

#ifndef TANDEM_SLOW_LANE_DAEMON_TOKEN_CREDENTIALS_H_
#define TANDEM_SLOW_LANE_DAEMON_TOKEN_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

namespace tandem::slow_lane {

// The time of the comparison depends on the length of the shown token alone.
std::shared_ptr<grpc::ServerCredentials> TokenCredentials(
    const std::string& token);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_TOKEN_CREDENTIALS_H_

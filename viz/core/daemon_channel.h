// What all calls to the slow lane's daemon share: the channel, the token, the
// conversion of errors.

#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The variable TANDEM_DAEMON, HOST:PORT or unix:PATH, or else the daemon's
// default address.
std::string DaemonTarget();

// Opens no connection before the first call. Finds a restarted daemon within a
// second. With TLS if the variables of DaemonCredentials are set; stderr gets
// what is wrong with their files.
std::shared_ptr<grpc::Channel> NewDaemonChannel(const std::string& target);

// Blocks until the channel is connected, at most `secs`. Each call begins with
// it: gRPC connects only while a thread waits in it, so calls that fail at once
// would find a restarted daemon seconds later.
void AwaitConnection(grpc::Channel* channel, double secs);

// Adds the access token of the file that the variable TANDEM_TOKEN_FILE names;
// nothing without that variable. Errors: ReadToken's.
absl::Status AddDaemonToken(grpc::ClientContext* context);

// Returns the same code, and a printable text with the call and the target. An
// unreachable daemon's text has the next action.
absl::Status DaemonStatus(const grpc::Status& status, absl::string_view call,
                          absl::string_view target);

}  // namespace tandem

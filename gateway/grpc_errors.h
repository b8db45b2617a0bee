// The gRPC status of an error.
//
// Data flow: a Status of the transport or of the engine -> grpc::Status ->
// the program.

#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace tandem::gateway {

// Whether there is no engine now, or it does not answer: a later call may find
// one.
bool IsAway(const absl::Status& status);

// The text for programs that repeat a call while it contains "not ready yet".
std::string NotReadyText(const absl::Status& status);

// UNAVAILABLE with NotReadyText: IsAway. FAILED_PRECONDITION: another client
// has the client slot. Otherwise the status' own code: INVALID_ARGUMENT,
// UNIMPLEMENTED, RESOURCE_EXHAUSTED, INTERNAL and others.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace tandem::gateway

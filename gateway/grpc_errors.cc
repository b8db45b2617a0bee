#include "gateway/grpc_errors.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {

bool IsAway(const absl::Status& status) {
  switch (CodeOf(status)) {
    case ErrorCode::kNotReady:
    case ErrorCode::kPeerGone:
    case ErrorCode::kBrokenPeer:
    case ErrorCode::kClientClosed:
    case ErrorCode::kInterrupted:
      return true;
    default:
      return false;
  }
}

std::string NotReadyText(const absl::Status& status) {
  return absl::StrCat("not ready yet: ", status.message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  if (IsAway(status)) {
    return {grpc::StatusCode::UNAVAILABLE, NotReadyText(status)};
  }
  const grpc::StatusCode code =
      CodeOf(status) == ErrorCode::kAlreadyAttached
          ? grpc::StatusCode::FAILED_PRECONDITION
          // Both have the same numbers, by design.
          : static_cast<grpc::StatusCode>(status.code());
  return {code, std::string(status.message())};
}

}  // namespace tandem::gateway

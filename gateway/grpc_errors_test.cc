#include "gateway/grpc_errors.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

grpc::StatusCode CodeFor(ErrorCode code) {
  return ToGrpc(MakeError(code, "text")).error_code();
}

TEST(GrpcErrors, EachEngineErrorHasItsStatus) {
  EXPECT_EQ(CodeFor(ErrorCode::kInvalidArgument),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CodeFor(ErrorCode::kInvalidAction),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CodeFor(ErrorCode::kUnsupported), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(CodeFor(ErrorCode::kRingFull),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(CodeFor(ErrorCode::kEngineFailed), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(CodeFor(ErrorCode::kAlreadyAttached),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(CodeFor(ErrorCode::kStepTimeout),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

TEST(GrpcErrors, MissingEngineIsUnavailableInTheWordsThatProgramsWaitFor) {
  for (const ErrorCode code :
       {ErrorCode::kNotReady, ErrorCode::kPeerGone, ErrorCode::kBrokenPeer}) {
    const grpc::Status status = ToGrpc(MakeError(code, "the reason"));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "not ready yet: the reason");
  }
}

}  // namespace
}  // namespace tandem::gateway

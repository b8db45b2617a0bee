#include "base/guarded.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error.h"

namespace tandem {
namespace {

TEST(Guarded, ReturnsTheResult) {
  EXPECT_TRUE(Guarded([] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(Guarded([] { return absl::StatusOr<int>(7); }).value(), 7);
}

TEST(Guarded, ReturnsTheErrorOfThrowUnlessOk) {
  const absl::Status error = Guarded([]() -> absl::Status {
    ThrowUnlessOk(MakeError(ErrorCode::kInvalidArgument, "no such env"));
    return absl::OkStatus();
  });
  EXPECT_EQ(CodeOf(error), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message(), "no such env");
}

TEST(Guarded, ExceptionsAreEngineErrorsWithTheirText) {
  const absl::Status error = Guarded(
      []() -> absl::Status { throw std::runtime_error("the arm is off"); });
  EXPECT_EQ(CodeOf(error), ErrorCode::kEngineFailed);
  EXPECT_NE(error.message().find("the arm is off"), std::string::npos);
  EXPECT_EQ(CodeOf(Guarded([]() -> absl::Status { throw 7; })),
            ErrorCode::kEngineFailed);
}

// A client must not take an engine's mistake for the end of its peer.
TEST(Guarded, AStatusOfTheEnginesOwnCodeIsAnEngineError) {
  const absl::Status error = Guarded([]() -> absl::Status {
    throw absl::BadStatusOrAccess(MakeError(ErrorCode::kPeerGone, "gone"));
  });
  EXPECT_EQ(CodeOf(error), ErrorCode::kEngineFailed);
}

}  // namespace
}  // namespace tandem

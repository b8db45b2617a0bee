// Services: the methods that the engine lists, their switch, and attendants.
#include <gtest/gtest.h>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"
#include "transport/attendant_side.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

using Services = RulesFor<>;

// An engine serves any services; an empty request may be invalid. Images are
// left out: a renderer may take long to start.
TEST_F(Services, EveryMethodIsAnswered) {
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().methods) {
    const rpc::Payload expected = PayloadsOf(method).answer;
    if (expected == rpc::Payload::NamedImageFrame ||
        expected == rpc::Payload::ImageFrame ||
        expected == rpc::Payload::NONE) {  // of a newer version
      continue;
    }
    const absl::StatusOr<RpcMessage> answer = engine_.Call(EmptyCall(method));
    const ErrorCode code = CodeOf(answer.status());
    EXPECT_TRUE(code == ErrorCode::kOk || code == ErrorCode::kInvalidArgument ||
                code == ErrorCode::kUnsupported)
        << rpc::EnumNameMethodId(method) << ": " << answer.status();
    if (!answer.ok()) continue;
    EXPECT_EQ(answer->envelope().payload_type(), expected);
  }
  Step();
}

TEST_F(Services, ASwitchedOffServiceRefusesCalls) {
  if (!EngineFacts::Get().Serves(rpc::MethodId::GetSimulationMode)) {
    GTEST_SKIP() << "engine without the service scene";
  }
  Begin();
  for (const bool enabled : {false, true}) {
    rpc::SetServiceRequestT request;
    request.name = "scene";
    request.enabled = enabled;
    EXPECT_TRUE(
        Answer<rpc::SetServiceResponseT>(rpc::MethodId::SetService, request)
            .success);
    EXPECT_EQ(
        CodeOf(
            engine_.Call(EmptyCall(rpc::MethodId::GetSimulationMode)).status()),
        enabled ? ErrorCode::kOk : ErrorCode::kUnsupported);
    Step();
  }
}

TEST_F(Services, AnAttendantCallsBesideTheClient) {
  Begin();
  for (int attendant = 0; attendant < 20; ++attendant) {
    const auto side =
        AttendantSide::Attach(engine_.name, {.label = "conformance"});
    Require(side.status());
    const auto calls = RpcClient::Create(side->get(), {});
    Require(calls.status());
    Require(
        (*calls)
            ->Call(EmptyCall(rpc::MethodId::GetServices), Deadline::Infinite())
            .status());
    Step();
  }
}

}  // namespace
}  // namespace tandem

// OwnMethods: methods that the engine defines itself, which its description
// lists.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/region.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

class OwnMethods : public RulesFor<Capability::kOwnMethods> {
 protected:
  std::vector<std::string> Names() {
    const auto described = nlohmann::json::parse(
        DescriptionOf(engine_.client->plan(), *engine_.client->mapping()));
    std::vector<std::string> names;
    for (const auto& method :
         described.value("own_methods", nlohmann::json::array())) {
      names.push_back(method.value("name", ""));
    }
    return names;
  }
  absl::Status CallOwn(const std::string& name, std::vector<uint8_t> data) {
    rpc::CallOwnRequestT request;
    request.name = name;
    request.data = std::move(data);
    const absl::StatusOr<RpcMessage> answer =
        engine_.Call(rpc::MethodId::CallOwn, std::move(request));
    if (!answer.ok()) return answer.status();
    EXPECT_NE(answer->envelope().payload_as_CallOwnResponse(), nullptr);
    return absl::OkStatus();
  }
  // Whether an engine may answer an unexpected request so.
  static bool IsAnswer(const absl::Status& status) {
    const ErrorCode code = CodeOf(status);
    return code == ErrorCode::kOk || code == ErrorCode::kInvalidArgument ||
           code == ErrorCode::kUnsupported || code == ErrorCode::kEngineFailed;
  }
};

TEST_F(OwnMethods, EachAnswersOrRefusesAnyRequest) {
  Begin();
  ASSERT_FALSE(Names().empty());
  for (const std::string& name : Names()) {
    for (const size_t bytes : {size_t{0}, size_t{5}, size_t{2} << 20}) {
      const absl::Status status =
          CallOwn(name, std::vector<uint8_t>(bytes, uint8_t{0xFF}));
      EXPECT_TRUE(IsAnswer(status)) << name << ": " << status;
    }
    Step();
  }
}

TEST_F(OwnMethods, AnUnknownNameIsRefusedWithTheKnownOnes) {
  Begin();
  const absl::Status refused = CallOwn("no such method", {});
  EXPECT_EQ(CodeOf(refused), ErrorCode::kInvalidArgument);
  for (const std::string& name : Names()) {
    EXPECT_TRUE(absl::StrContains(refused.message(), name)) << refused;
  }
  Step();
}

}  // namespace
}  // namespace tandem

#include "gateway/services.h"

#include <gtest/gtest.h>

#include "gateway/relay_calls.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"

namespace tandem::gateway {
namespace {

TEST(ServedRpcs, EachOfTheEngineHasAMethodOfItsKind) {
  size_t of_engine = 0;
  for (const ServedRpc& served : ServedRpcs()) {
    if (served.served_by != "engine") continue;
    const rpc::MethodId method = MethodOf(served.rpc->name());
    EXPECT_NE(PayloadsOf(method).answer, rpc::Payload::NONE)
        << served.rpc->full_name();
    EXPECT_EQ(IsStream(method), served.rpc->server_streaming())
        << served.rpc->full_name();
    ++of_engine;
  }
  EXPECT_EQ(ServedRpcs().size(), 37U + 3U);  // of 0.5.0, and of 0.1.84 only
  EXPECT_EQ(of_engine, 23U);
}

}  // namespace
}  // namespace tandem::gateway

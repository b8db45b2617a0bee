// CallingClient: a client in the test's thread, which steps and calls.
//
//   CallingClient client(name);
//   client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 1);
//   EXPECT_EQ(client.Await().correlation_id, 1u);

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/rpc_ends.h"

namespace tandem {

class CallingClient {
 public:
  explicit CallingClient(const std::string& name)
      : side_(ClientSide::Attach(name, {}).value()),
        calls_(RpcEnds::Writer(&side_).value()),
        answers_(RpcEnds::Reader(&side_).value(), {}) {}

  // Steps with actions 0; returns the first observation.
  float Step() {
    Send();
    EXPECT_EQ(side_.Recv(Deadline::After(20)), ErrorCode::kOk);
    return side_.arrays().obs[0];
  }
  void Send() {
    const std::vector<float> actions(side_.arrays().actions.size());
    EXPECT_EQ(side_.Send(actions), ErrorCode::kOk);
  }

  template <typename Request>
  void Call(rpc::MethodId method, uint64_t id, Request request = {}) {
    rpc::EnvelopeT envelope;
    envelope.method = method;
    envelope.correlation_id = id;
    envelope.payload.Set(std::move(request));
    EXPECT_EQ(calls_.Post(envelope), ErrorCode::kOk);
  }

  ClientSide& side() { return side_; }

  // Returns the next envelope, if there is one.
  std::optional<rpc::EnvelopeT> Take() {
    if (answers_.Next() != EnvelopeReader::Got::kEnvelope) return std::nullopt;
    rpc::EnvelopeT answer;
    answers_.envelope().UnPackTo(&answer);
    return answer;
  }
  rpc::EnvelopeT Await() {
    for (;;) {  // the test's alarm is the watchdog
      if (std::optional<rpc::EnvelopeT> answer = Take()) return *answer;
    }
  }

 private:
  ClientSide side_;
  EnvelopeWriter calls_;
  EnvelopeReader answers_;
};

}  // namespace tandem

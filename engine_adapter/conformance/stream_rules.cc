// Streams: order, rate and end of streams of numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

class Streams : public RulesFor<Capability::kStreams> {
 protected:
  RpcClient& calls() {
    const absl::StatusOr<RpcClient*> made = engine_.Calls();
    Require(made.status());
    return **made;
  }
  // `fps` 0: the engine's maximum.
  uint64_t Open(rpc::MethodId method, uint32_t fps = 0) {
    const auto open = [&](auto request) {
      request.target_fps = fps;
      rpc::EnvelopeT call;
      call.method = method;
      call.payload.Set(std::move(request));
      return calls().Open(call);
    };
    const absl::StatusOr<uint64_t> stream =
        method == rpc::MethodId::StreamJointState
            ? open(rpc::GetJointStateRequestT())
        : method == rpc::MethodId::StreamFullState
            ? open(rpc::StreamFullStateRequestT())
            : open(rpc::StreamTelemetryRequestT());
    Require(stream.status());
    return *stream;
  }
  // Steps until the stream has an item, and returns it.
  RpcMessage Item(uint64_t stream) {
    for (;;) {
      Step();
      absl::StatusOr<std::optional<RpcMessage>> item =
          calls().Next(stream, Deadline::Now());
      if (CodeOf(item.status()) == ErrorCode::kStepTimeout) continue;
      Require(item.status());
      if (!item->has_value()) {
        Require(MakeError(ErrorCode::kBrokenPeer,
                          "expected an item, found the stream's end"));
      }
      return **std::move(item);
    }
  }
  bool Cancel(uint64_t stream) {
    rpc::CancelStreamRequestT request;
    request.correlation_id = stream;
    return Answer<rpc::CancelStreamResponseT>(rpc::MethodId::CancelStream,
                                              request)
        .success;
  }
};

TEST_F(Streams, ItemsAreNumberedInOrder) {
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().NumberStreams()) {
    const uint64_t stream = Open(method);
    uint64_t last = 0;
    for (int i = 0; i < 10; ++i) {
      const RpcMessage item = Item(stream);
      EXPECT_EQ(item.envelope().method(), method);
      EXPECT_EQ(item.envelope().payload_type(), PayloadsOf(method).answer);
      EXPECT_GT(item.envelope().stream_number(), last);
      last = item.envelope().stream_number();
    }
    calls().Close(stream);
  }
}

TEST_F(Streams, ItemsComeNoFasterThanRequested) {
  constexpr uint32_t kFps = 20;
  constexpr int kItems = 6;
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().NumberStreams()) {
    const int64_t start_ns = MonotonicNanos();
    const uint64_t stream = Open(method, kFps);
    for (int i = 0; i < kItems; ++i) Item(stream);
    const double secs = static_cast<double>(MonotonicNanos() - start_ns) / 1e9;
    EXPECT_LE(kItems, secs * kFps + 2) << rpc::EnumNameMethodId(method);
    calls().Close(stream);
  }
}

TEST_F(Streams, ACancelledStreamEndsOnce) {
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().NumberStreams()) {
    const uint64_t stream = Open(method);
    Item(stream);
    EXPECT_TRUE(Cancel(stream));
    for (;;) {
      const absl::StatusOr<std::optional<RpcMessage>> item =
          calls().Next(stream, Deadline::Infinite());
      Require(item.status());
      if (!item->has_value()) break;
    }
    EXPECT_FALSE(Cancel(stream));
    Step();
  }
}

TEST_F(Streams, StreamsMayBeBrokenOffManyTimes) {
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().NumberStreams()) {
    for (int i = 0; i < 200; ++i) {
      const uint64_t stream = Open(method);
      Step();
      calls().Close(stream);
      Step();
    }
    const uint64_t stream = Open(method);
    Item(stream);
    EXPECT_TRUE(Cancel(stream));
  }
}

TEST_F(Streams, TheNextClientGetsNoItemOfTheLast) {
  Begin();
  for (const rpc::MethodId method : EngineFacts::Get().NumberStreams()) {
    for (int i = 0; i < 10; ++i) Open(method);
  }
  Step();
  Attach();
  for (int step = 0; step < 100; ++step) Step();
  Require(engine_.Call(EmptyCall(rpc::MethodId::GetServices)).status());
  EXPECT_EQ(calls().Unclaimed(), 0u);
}

}  // namespace
}  // namespace tandem

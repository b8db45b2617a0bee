// Length: one fixture, and a short test for each rule of the dispatcher.

#include "engine_adapter/rpc/rpc_dispatcher.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "transport/ring/testing/ring_test_region.h"

namespace tandem {
namespace {

using Got = EnvelopeReader::Got;

constexpr uint32_t kRingBytes = 4096;
constexpr int64_t kMs = 1'000'000;

// A dispatcher of three methods, and a client at the rings' other ends.
class RpcDispatcherTest : public testing::Test {
 protected:
  RpcDispatcherTest() {
    dispatcher_.Serve<rpc::GetSceneInfoRequestT, rpc::GetSceneInfoResponseT>(
        rpc::MethodId::GetSceneInfo, [this](const rpc::GetSceneInfoRequestT&) {
          MayThrow();
          rpc::GetSceneInfoResponseT response;
          response.entity_count = ++asked_;
          return response;
        });
    dispatcher_.Serve<rpc::GetEntityRequestT, rpc::GetEntityResponseT>(
        rpc::MethodId::GetEntity,
        [](const rpc::GetEntityRequestT& request)
            -> absl::StatusOr<rpc::GetEntityResponseT> {
          return MakeError(ErrorCode::kInvalidArgument,
                           "no entity named " + request.name);
        });
    dispatcher_.ServeLater<rpc::SingleStepRequestT, rpc::SingleStepResponseT>(
        rpc::MethodId::SingleStep,
        [this](const rpc::SingleStepRequestT&,
               RpcAnswer<rpc::SingleStepResponseT> answer) {
          late_.push_back(std::move(answer));
          MayThrow();
        });
    dispatcher_.ServeStream<rpc::StreamTelemetryRequestT>(
        rpc::MethodId::StreamTelemetry,
        [this](const rpc::StreamTelemetryRequestT& request) {
          MayThrow();
          RpcStream stream = {.hz = hz_.value_or(request.target_fps),
                              .next = [this] { return NextItems(); }};
          if (can_pass_) {
            stream.pass = [this] {
              frames_ += static_cast<uint32_t>(news_);
              return news_;
            };
          }
          return absl::StatusOr<RpcStream>(std::move(stream));
        });
    connection_.Begin(EnvelopeReader(to_engine_.Reader(), {}),
                      EnvelopeWriter(to_client_.Writer()));
  }

  void MayThrow() const {
    if (throws_) throw std::runtime_error("fell over");
  }
  absl::StatusOr<std::vector<rpc::PayloadUnion>> NextItems() {
    MayThrow();
    if (!stream_status_.ok()) return stream_status_;
    std::vector<rpc::PayloadUnion> items(news_);
    for (rpc::PayloadUnion& item : items) {
      rpc::TelemetryFrameT frame;
      frame.frame_number = ++frames_;
      frame.observation_qpos.assign(item_floats_, 0.5F);
      item.Set(std::move(frame));
    }
    return items;
  }

  template <typename Request>
  void Call(rpc::MethodId method, uint64_t id, Request request) {
    rpc::EnvelopeT envelope;
    envelope.method = method;
    envelope.correlation_id = id;
    envelope.payload.Set(std::move(request));
    ASSERT_EQ(calls_.Post(envelope), ErrorCode::kOk);
  }

  // Returns the next answer as a struct.
  rpc::EnvelopeT Answer() {
    rpc::EnvelopeT answer;
    Got got = Got::kNothing;
    do {
      got = answers_.Next();
    } while (got == Got::kPiece);
    EXPECT_EQ(got, Got::kEnvelope);
    if (got == Got::kEnvelope) answers_.envelope().UnPackTo(&answer);
    return answer;
  }
  void ExpectError(uint64_t id, ErrorCode code, const std::string& text) {
    const rpc::EnvelopeT answer = Answer();
    EXPECT_EQ(answer.correlation_id, id);
    EXPECT_EQ(answer.error_code, static_cast<uint16_t>(code));
    EXPECT_TRUE(absl::StrContains(answer.error_message, text))
        << answer.error_message;
    EXPECT_EQ(answer.payload.type, rpc::Payload::NONE);
  }

  TestRegion to_engine_{kRingBytes};
  TestRegion to_client_{kRingBytes};
  bool throws_ = false;
  bool can_pass_ = true;
  std::optional<double> hz_;
  uint32_t asked_ = 0;
  uint32_t frames_ = 0;
  size_t news_ = 1;  // the number of items of a moment
  size_t item_floats_ = 4;
  absl::Status stream_status_;
  std::vector<RpcAnswer<rpc::SingleStepResponseT>> late_;
  bool busy_ = false;
  absl::Status admission_;
  RpcDispatcher dispatcher_{[this] { return busy_; }};
  RpcConnection connection_{&dispatcher_,
                            {.calls_per_poll = 4,
                             .streams = 2,
                             .stream_hz = 100,
                             .late_calls = 3,
                             .waiting_bytes = 64 * 1024},
                            [this](rpc::MethodId) { return admission_; }};
  EnvelopeWriter calls_{to_engine_.Writer()};
  EnvelopeReader answers_{to_client_.Reader(), {}};
};

TEST_F(RpcDispatcherTest, ImageWithoutASlotStaysInTheAnswer) {
  dispatcher_.Serve<rpc::GetCameraFrameRequestT, rpc::NamedImageFrameT>(
      rpc::MethodId::GetCameraFrame, [](const rpc::GetCameraFrameRequestT&) {
        rpc::NamedImageFrameT response;
        response.frame = std::make_unique<rpc::ImageFrameT>();
        response.frame->data = {1, 2, 3};
        response.frame->slot_seq = 99;  // only the connection may set it
        return response;
      });
  for (const bool to_slot : {false, true}) {
    rpc::GetCameraFrameRequestT request;
    request.to_slot = to_slot;
    Call(rpc::MethodId::GetCameraFrame, 7, request);
    (void)connection_.Poll(0);
    const rpc::EnvelopeT answer = Answer();
    const rpc::ImageFrameT& frame = *answer.payload.AsNamedImageFrame()->frame;
    EXPECT_EQ(frame.slot_seq, 0u);
    EXPECT_EQ(frame.data, std::vector<uint8_t>({1, 2, 3}));
  }
}

TEST_F(RpcDispatcherTest, AnswersEachCallOnceInOrder) {
  for (uint64_t id = 1; id <= 3; ++id) {
    Call(rpc::MethodId::GetSceneInfo, id, rpc::GetSceneInfoRequestT());
  }
  EXPECT_FALSE(connection_.Poll(0));
  for (uint32_t id = 1; id <= 3; ++id) {
    const rpc::EnvelopeT answer = Answer();
    EXPECT_EQ(answer.correlation_id, id);
    EXPECT_EQ(answer.method, rpc::MethodId::GetSceneInfo);
    ASSERT_NE(answer.payload.AsGetSceneInfoResponse(), nullptr);
    EXPECT_EQ(answer.payload.AsGetSceneInfoResponse()->entity_count, id);
  }
  EXPECT_EQ(answers_.Next(), Got::kNothing);
}

TEST_F(RpcDispatcherTest, AStepWaitsForAFewCallsOnly) {
  for (uint64_t id = 1; id <= 6; ++id) {
    Call(rpc::MethodId::GetSceneInfo, id, rpc::GetSceneInfoRequestT());
  }
  EXPECT_TRUE(connection_.Poll(0));
  EXPECT_EQ(asked_, 4u);
  EXPECT_FALSE(connection_.Poll(0));
  EXPECT_EQ(asked_, 6u);
}

TEST_F(RpcDispatcherTest, HandlersErrorsReachTheCaller) {
  rpc::GetEntityRequestT request;
  request.name = "knee";
  Call(rpc::MethodId::GetEntity, 7, std::move(request));
  (void)connection_.Poll(0);
  ExpectError(7, ErrorCode::kInvalidArgument, "no entity named knee");
}

TEST_F(RpcDispatcherTest, UnanswerableRequestGetsAnError) {
  Call(rpc::MethodId::Draw, 1, rpc::DebugDrawRequestT());
  Call(static_cast<rpc::MethodId>(999), 2, rpc::DebugDrawRequestT());
  Call(rpc::MethodId::GetEntity, 3, rpc::DebugDrawRequestT());
  dispatcher_.SwitchOff(rpc::MethodId::GetSceneInfo, "scene is switched off");
  Call(rpc::MethodId::GetSceneInfo, 4, rpc::GetSceneInfoRequestT());
  (void)connection_.Poll(0);
  ExpectError(1, ErrorCode::kUnsupported, "Draw");
  ExpectError(2, ErrorCode::kUnsupported, "999");
  ExpectError(3, ErrorCode::kInvalidArgument, "expected GetEntityRequest");
  ExpectError(4, ErrorCode::kUnsupported, "switched off");
  EXPECT_EQ(connection_.dropped(), 0u);
}

TEST_F(RpcDispatcherTest, ExceptionOfHandlerReachesTheCaller) {
  throws_ = true;
  Call(rpc::MethodId::GetSceneInfo, 1, rpc::GetSceneInfoRequestT());
  Call(rpc::MethodId::SingleStep, 2, rpc::SingleStepRequestT());
  Call(rpc::MethodId::StreamTelemetry, 3, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  for (uint64_t id = 1; id <= 3; ++id) {
    ExpectError(id, ErrorCode::kEngineFailed, "fell over");
  }
  // A kept answer callback does not answer the call a second time.
  ASSERT_EQ(late_.size(), 1u);
  late_[0](rpc::SingleStepResponseT());
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  EXPECT_TRUE(connection_.IsQuiet());
  // The callback does not answer another call with the same id either.
  throws_ = false;
  Call(rpc::MethodId::SingleStep, 2, rpc::SingleStepRequestT());
  (void)connection_.Poll(1000 * kMs);
  late_[0](rpc::SingleStepResponseT());
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  late_[1](rpc::SingleStepResponseT());
  EXPECT_EQ(Answer().correlation_id, 2u);
}

TEST_F(RpcDispatcherTest, AStreamThatThrowsEnds) {
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  EXPECT_EQ(Answer().stream_number, 1u);
  throws_ = true;
  (void)connection_.Poll(2000 * kMs);
  const rpc::EnvelopeT last = Answer();
  EXPECT_TRUE(last.end_of_stream);
  EXPECT_EQ(last.error_code, static_cast<uint16_t>(ErrorCode::kEngineFailed));
  EXPECT_TRUE(absl::StrContains(last.error_message, "fell over"));
  EXPECT_TRUE(connection_.IsQuiet());
}

TEST_F(RpcDispatcherTest, CountsAnswersOfCancelledCalls) {
  Call(rpc::MethodId::GetSceneInfo, 0, rpc::GetSceneInfoRequestT());
  RingWriter raw = to_engine_.Writer();
  const std::string garbage(100, 'x');
  ASSERT_EQ(raw.TryWrite(std::as_bytes(std::span(garbage))), ErrorCode::kOk);
  (void)connection_.Poll(0);
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  EXPECT_EQ(asked_, 0u);
  EXPECT_EQ(connection_.dropped(), 2u);
}

TEST_F(RpcDispatcherTest, AStreamComesAtItsRateBesideCalls) {
  rpc::StreamTelemetryRequestT request;
  request.target_fps = 50;
  Call(rpc::MethodId::StreamTelemetry, 5, request);
  (void)connection_.Poll(1000 * kMs);
  for (int i = 1; i <= 5; ++i) {
    const rpc::EnvelopeT item = Answer();
    EXPECT_EQ(item.correlation_id, 5u);
    EXPECT_EQ(item.stream_number, static_cast<uint64_t>(i));
    EXPECT_EQ(item.dropped, 0u);
    EXPECT_FALSE(item.end_of_stream);
    const int64_t due = *connection_.DueNs(1000 * kMs);
    EXPECT_EQ(due, (1000 + 20 * i) * kMs);
    (void)connection_.Poll(due - 1);
    EXPECT_EQ(answers_.Next(), Got::kNothing);
    (void)connection_.Poll(due);
  }
}

TEST_F(RpcDispatcherTest, AStreamIsBoundedByTheEnginesRate) {
  rpc::StreamTelemetryRequestT request;
  request.target_fps = 100'000;
  Call(rpc::MethodId::StreamTelemetry, 5, request);
  int items = 0;
  for (int64_t now = 1000 * kMs; now < 2000 * kMs; now += kMs) {
    (void)connection_.Poll(now);
    while (answers_.Next() == Got::kEnvelope) ++items;
  }
  EXPECT_NEAR(items, 100, 1);
}

TEST_F(RpcDispatcherTest, SlowReaderLosesItemsAndGetsTheCount) {
  item_floats_ = 300;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  for (int i = 0; i < 50; ++i)
    (void)connection_.Poll(1000 * kMs + i * 10 * kMs);
  // Without new items, no item is lost.
  news_ = 0;
  for (int i = 50; i < 70; ++i)
    (void)connection_.Poll(1000 * kMs + i * 10 * kMs);
  EXPECT_EQ(frames_, 50u);
  EXPECT_EQ(connection_.DueNs(1700 * kMs), 1701 * kMs);  // checks for room
  uint64_t received = 0;
  while (answers_.Next() == Got::kEnvelope) {
    EXPECT_EQ(answers_.envelope().stream_number(), ++received);
    (void)connection_.Poll(1700 * kMs);
  }
  EXPECT_LT(received, 6u);  // the items in the ring, and one that waited
  news_ = 3;
  (void)connection_.Poll(1800 * kMs);
  const rpc::EnvelopeT item = Answer();
  EXPECT_EQ(item.dropped, 50 - received);
  EXPECT_EQ(item.stream_number, 51u);
}

TEST_F(RpcDispatcherTest, AMomentsItemsAreAllCounted) {
  item_floats_ = 300;
  news_ = 3;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  for (int i = 0; i < 10; ++i)
    (void)connection_.Poll(1000 * kMs + i * 10 * kMs);
  news_ = 0;
  uint64_t received = 0;
  for (int quiet = 0; quiet < 2;) {
    quiet = answers_.Next() == Got::kEnvelope ? 0 : quiet + 1;
    if (quiet == 0) ++received;
    (void)connection_.Poll(1200 * kMs);
  }
  rpc::CancelStreamRequestT cancel;
  cancel.correlation_id = 5;
  Call(rpc::MethodId::CancelStream, 6, cancel);
  (void)connection_.Poll(1200 * kMs);
  EXPECT_EQ(received + Answer().dropped, frames_);
  EXPECT_EQ(frames_, 30u);
}

TEST_F(RpcDispatcherTest, AStreamThatCannotPassWaitsForRoom) {
  can_pass_ = false;
  item_floats_ = 300;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  for (int i = 0; i < 50; ++i)
    (void)connection_.Poll(1000 * kMs + i * 10 * kMs);
  EXPECT_LT(frames_, 6u);
  EXPECT_EQ(connection_.DueNs(1500 * kMs), 1501 * kMs);  // it does not spin
  for (uint64_t number = 1; number <= 10; ++number) {
    const rpc::EnvelopeT item = Answer();
    EXPECT_EQ(item.stream_number, number);
    EXPECT_EQ(item.dropped, 0u);
    (void)connection_.Poll(1500 * kMs);
    (void)connection_.Poll((1500 + 10 * static_cast<int64_t>(number)) * kMs);
  }
}

TEST_F(RpcDispatcherTest, AMomentBeyondTheBoundIsLostInPart) {
  item_floats_ = 300;
  news_ = 1000;  // 1.2 MB; the bound is 64 KiB
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  news_ = 0;
  uint64_t received = 0;
  for (int quiet = 0; quiet < 2;) {
    quiet = answers_.Next() == Got::kEnvelope ? 0 : quiet + 1;
    if (quiet == 0) ++received;
    (void)connection_.Poll(1200 * kMs);
  }
  EXPECT_GT(received, 40u);
  EXPECT_LT(received, 70u);
  news_ = 1;
  (void)connection_.Poll(1300 * kMs);
  const rpc::EnvelopeT item = Answer();
  EXPECT_EQ(item.dropped, 1000 - received);
  EXPECT_EQ(item.stream_number, 1001u);
}

TEST_F(RpcDispatcherTest, LateAnswersAreWithinTheBound) {
  for (uint64_t id = 1; id <= 3; ++id) {
    Call(rpc::MethodId::SingleStep, id, rpc::SingleStepRequestT());
  }
  (void)connection_.Poll(0);
  rpc::SingleStepResponseT large;
  large.message = std::string(60 * 1024, 'x');
  for (const auto& answer : late_) answer(large);
  for (uint64_t id = 1; id <= 3; ++id) {
    rpc::EnvelopeT answer;
    Got got = Got::kPiece;
    while (got == Got::kPiece) {
      got = answers_.Next();
      (void)connection_.Poll(0);
    }
    ASSERT_EQ(got, Got::kEnvelope);
    answers_.envelope().UnPackTo(&answer);
    EXPECT_EQ(answer.correlation_id, id);
    EXPECT_EQ(
        answer.error_code,
        static_cast<uint16_t>(id < 3 ? ErrorCode::kOk : ErrorCode::kRingFull));
  }
}

TEST_F(RpcDispatcherTest, TooLargeAnswersAndItemsAreErrors) {
  connection_.Begin(EnvelopeReader(to_engine_.Reader(), {}),
                    EnvelopeWriter(to_client_.Writer(), 8 * 1024));
  Call(rpc::MethodId::SingleStep, 1, rpc::SingleStepRequestT());
  (void)connection_.Poll(0);
  ASSERT_EQ(late_.size(), 1u);
  rpc::SingleStepResponseT large;
  large.message = std::string(9 * 1024, 'x');
  late_[0](large);
  ExpectError(1, ErrorCode::kMessageTooLarge, "8192 bytes");
  item_floats_ = 3000;
  Call(rpc::MethodId::StreamTelemetry, 2, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  ExpectError(2, ErrorCode::kMessageTooLarge, "StreamTelemetry");
  EXPECT_TRUE(connection_.IsQuiet());
}

TEST_F(RpcDispatcherTest, RequestsBeyondTheLimitGetACodeOfTheirOwn) {
  connection_.Begin(
      EnvelopeReader(to_engine_.Reader(), {.max_envelope_bytes = 8 * 1024}),
      EnvelopeWriter(to_client_.Writer()));
  rpc::GetEntityRequestT request;
  request.name = std::string(9 * 1024, 'n');
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetEntity;
  call.correlation_id = 3;
  call.payload.Set(std::move(request));
  (void)calls_.Post(call);
  (void)connection_.Poll(0);
  ExpectError(3, ErrorCode::kMessageTooLarge, "8192 bytes");
}

TEST_F(RpcDispatcherTest, RefusesInvalidRate) {
  hz_ = 1e-12;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  ExpectError(5, ErrorCode::kInvalidArgument, "0.001");
  hz_ = 0;
  dispatcher_.LimitStreams(rpc::MethodId::StreamTelemetry, 1e-12);
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(5'000'000 * kMs);
  EXPECT_EQ(connection_.DueNs(0), 6'000'000 * kMs);
}

TEST_F(RpcDispatcherTest, AStreamEndsOnceCancelled) {
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  EXPECT_EQ(Answer().stream_number, 1u);
  for (const bool first : {true, false}) {
    rpc::CancelStreamRequestT cancel;
    cancel.correlation_id = 5;
    Call(rpc::MethodId::CancelStream, 6, cancel);
    (void)connection_.Poll(1001 * kMs);
    if (first) {
      const rpc::EnvelopeT last = Answer();
      EXPECT_EQ(last.correlation_id, 5u);
      EXPECT_TRUE(last.end_of_stream);
    }
    const rpc::EnvelopeT answer = Answer();
    EXPECT_EQ(answer.correlation_id, 6u);
    EXPECT_EQ(answer.payload.AsCancelStreamResponse()->success, first);
  }
  EXPECT_EQ(connection_.DueNs(0), std::nullopt);
}

TEST_F(RpcDispatcherTest, FailedStreamSendsErrorAndEnds) {
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  stream_status_ = MakeError(ErrorCode::kEngineFailed, "no more");
  (void)connection_.Poll(1000 * kMs);
  const rpc::EnvelopeT last = Answer();
  EXPECT_TRUE(last.end_of_stream);
  EXPECT_EQ(last.error_message, "no more");
  EXPECT_EQ(connection_.DueNs(0), std::nullopt);
}

TEST_F(RpcDispatcherTest, WithoutNewsAStreamIsSilent) {
  news_ = 0;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  for (int i = 0; i < 10; ++i)
    (void)connection_.Poll(1000 * kMs + i * 10 * kMs);
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  // The stream is due at the next poll, not at a time.
  EXPECT_EQ(connection_.DueNs(2000 * kMs), std::nullopt);
  EXPECT_FALSE(connection_.IsQuiet());
  news_ = 1;
  (void)connection_.Poll(2000 * kMs);
  EXPECT_EQ(Answer().stream_number, 1u);
  EXPECT_EQ(connection_.DueNs(2000 * kMs), 2010 * kMs);
}

TEST_F(RpcDispatcherTest, AMomentMayHaveManyItems) {
  news_ = 3;
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  for (uint64_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(Answer().stream_number, number);
  }
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  EXPECT_EQ(connection_.DueNs(1000 * kMs), 1010 * kMs);
}

TEST_F(RpcDispatcherTest, AMethodsStreamsMayHaveALimitOfTheirOwn) {
  dispatcher_.LimitStreams(rpc::MethodId::StreamTelemetry, 5);
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  EXPECT_EQ(connection_.DueNs(1000 * kMs), 1200 * kMs);
}

TEST_F(RpcDispatcherTest, ACallMayBeAnsweredLater) {
  Call(rpc::MethodId::SingleStep, 8, rpc::SingleStepRequestT());
  Call(rpc::MethodId::GetSceneInfo, 9, rpc::GetSceneInfoRequestT());
  (void)connection_.Poll(0);
  EXPECT_EQ(Answer().correlation_id, 9u);
  // The call's id is in use meanwhile.
  Call(rpc::MethodId::GetSceneInfo, 8, rpc::GetSceneInfoRequestT());
  (void)connection_.Poll(0);
  ExpectError(8, ErrorCode::kInvalidArgument, "not in use");
  ASSERT_EQ(late_.size(), 1u);
  for (int twice = 0; twice < 2; ++twice) {
    late_[0](rpc::SingleStepResponseT());
  }
  const rpc::EnvelopeT answer = Answer();
  EXPECT_EQ(answer.correlation_id, 8u);
  EXPECT_EQ(answer.method, rpc::MethodId::SingleStep);
  EXPECT_NE(answer.payload.AsSingleStepResponse(), nullptr);
  EXPECT_EQ(answers_.Next(), Got::kNothing);
}

TEST_F(RpcDispatcherTest, ACallerThatHasLeftIsNotAnswered) {
  Call(rpc::MethodId::SingleStep, 8, rpc::SingleStepRequestT());
  (void)connection_.Poll(0);
  connection_.Begin(EnvelopeReader(to_engine_.Reader(), {}),
                    EnvelopeWriter(to_client_.Writer()));
  Call(rpc::MethodId::SingleStep, 8, rpc::SingleStepRequestT());
  (void)connection_.Poll(0);
  ASSERT_EQ(late_.size(), 2u);
  EXPECT_TRUE(late_[0].wanted().expired());
  late_[0](rpc::SingleStepResponseT());
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  EXPECT_FALSE(late_[1].wanted().expired());
  late_[1](MakeError(ErrorCode::kEngineFailed, "fell over"));
  ExpectError(8, ErrorCode::kEngineFailed, "fell over");
}

TEST_F(RpcDispatcherTest, CancelledCallIsRemoved) {
  for (const uint64_t id : {7U, 8U}) {
    Call(rpc::MethodId::SingleStep, id, rpc::SingleStepRequestT());
  }
  for (const bool first : {true, false}) {
    rpc::CancelStreamRequestT cancel;
    cancel.correlation_id = 8;
    Call(rpc::MethodId::CancelStream, 9, cancel);
    (void)connection_.Poll(0);
    const rpc::EnvelopeT answer = Answer();
    EXPECT_EQ(answer.correlation_id, 9u);
    EXPECT_EQ(answer.payload.AsCancelStreamResponse()->success, first);
  }
  ASSERT_EQ(late_.size(), 2u);
  EXPECT_FALSE(late_[0].wanted().expired());
  EXPECT_TRUE(late_[1].wanted().expired());
  // The call's id is free again, and its late answer is ignored.
  Call(rpc::MethodId::SingleStep, 8, rpc::SingleStepRequestT());
  (void)connection_.Poll(0);
  ASSERT_EQ(late_.size(), 3u);
  late_[1](rpc::SingleStepResponseT());
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  late_[2](rpc::SingleStepResponseT());
  EXPECT_EQ(Answer().correlation_id, 8u);
  late_[0](rpc::SingleStepResponseT());
  EXPECT_EQ(Answer().correlation_id, 7u);
  EXPECT_TRUE(connection_.IsQuiet());
}

TEST_F(RpcDispatcherTest, AFewCallsAtMostAreAnsweredLater) {
  for (uint64_t id = 1; id <= 4; ++id) {
    Call(rpc::MethodId::SingleStep, id, rpc::SingleStepRequestT());
  }
  (void)connection_.Poll(0);
  ExpectError(4, ErrorCode::kRingFull, "at most 3");
}

TEST_F(RpcDispatcherTest, ListsServedMethods) {
  EXPECT_TRUE(dispatcher_.Serves(rpc::MethodId::GetSceneInfo));
  EXPECT_FALSE(dispatcher_.Serves(rpc::MethodId::Draw));
  dispatcher_.SwitchOff(rpc::MethodId::GetSceneInfo, "off");
  EXPECT_FALSE(dispatcher_.Serves(rpc::MethodId::GetSceneInfo));
}

TEST_F(RpcDispatcherTest, SwitchingAMethodOffEndsItsStreamsButNoCall) {
  Call(rpc::MethodId::StreamTelemetry, 1, rpc::StreamTelemetryRequestT());
  Call(rpc::MethodId::SingleStep, 2, rpc::SingleStepRequestT());
  news_ = 0;
  (void)connection_.Poll(1000 * kMs);
  for (const auto method :
       {rpc::MethodId::StreamTelemetry, rpc::MethodId::SingleStep}) {
    dispatcher_.SwitchOff(method, "off for now");
    connection_.EndStreams(method, dispatcher_.Check(method));
  }
  ASSERT_EQ(answers_.Next(), Got::kEnvelope);
  EXPECT_EQ(answers_.envelope().correlation_id(), 1u);
  EXPECT_TRUE(answers_.envelope().end_of_stream());
  EXPECT_EQ(answers_.envelope().error_message()->str(), "off for now");
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  ASSERT_EQ(late_.size(), 1u);
  late_[0](rpc::SingleStepResponseT());
  ASSERT_EQ(answers_.Next(), Got::kEnvelope);
  EXPECT_EQ(answers_.envelope().correlation_id(), 2u);
  EXPECT_EQ(answers_.envelope().error_code(), 0);
  dispatcher_.SwitchOn(rpc::MethodId::StreamTelemetry);
  Call(rpc::MethodId::StreamTelemetry, 1, rpc::StreamTelemetryRequestT());
  news_ = 1;
  (void)connection_.Poll(2000 * kMs);
  ASSERT_EQ(answers_.Next(), Got::kEnvelope);
  EXPECT_EQ(answers_.envelope().error_code(), 0);
}

TEST_F(RpcDispatcherTest, WhileTheEngineIsBusyCallsAndStreamsWaitInOrder) {
  Call(rpc::MethodId::StreamTelemetry, 1, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(0);
  EXPECT_EQ(Answer().stream_number, 1u);
  busy_ = true;
  dispatcher_.AnswerWhileBusy(rpc::MethodId::GetEntity);
  Call(rpc::MethodId::GetEntity, 2, rpc::GetEntityRequestT());
  Call(rpc::MethodId::GetSceneInfo, 3, rpc::GetSceneInfoRequestT());
  Call(rpc::MethodId::GetEntity, 4, rpc::GetEntityRequestT());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connection_.Poll(1000 * kMs));
  EXPECT_FALSE(connection_.IsQuiet());
  EXPECT_EQ(Answer().correlation_id, 2u);
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  busy_ = false;
  EXPECT_FALSE(connection_.Poll(1000 * kMs));
  for (const uint64_t id : {3u, 4u, 1u}) {
    EXPECT_EQ(Answer().correlation_id, id);
  }
}

TEST_F(RpcDispatcherTest, ACallThatWaitsForTheEngineEndsWithItsCaller) {
  busy_ = true;
  Call(rpc::MethodId::GetSceneInfo, 1, rpc::GetSceneInfoRequestT());
  (void)connection_.Poll(0);
  connection_.Begin(EnvelopeReader(to_engine_.Reader(), {}),
                    EnvelopeWriter(to_client_.Writer()));
  busy_ = false;
  EXPECT_FALSE(connection_.Poll(0));
  EXPECT_EQ(answers_.Next(), Got::kNothing);
  EXPECT_EQ(asked_, 0u);
}

TEST_F(RpcDispatcherTest, ACallerGetsTheErrorOfItsAdmission) {
  admission_ = MakeError(ErrorCode::kAlreadyAttached, "a client trains");
  Call(rpc::MethodId::GetSceneInfo, 1, rpc::GetSceneInfoRequestT());
  Call(rpc::MethodId::Draw, 2, rpc::DebugDrawRequestT());
  (void)connection_.Poll(0);
  ExpectError(1, ErrorCode::kAlreadyAttached, "a client trains");
  ExpectError(2, ErrorCode::kUnsupported, "Draw");
  EXPECT_EQ(asked_, 0u);
}

TEST_F(RpcDispatcherTest, HasAFewStreamsOpenAndEachUnderItsOwnId) {
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  Call(rpc::MethodId::StreamTelemetry, 6, rpc::StreamTelemetryRequestT());
  Call(rpc::MethodId::StreamTelemetry, 7, rpc::StreamTelemetryRequestT());
  news_ = 0;
  (void)connection_.Poll(1000 * kMs);
  ExpectError(5, ErrorCode::kInvalidArgument, "not in use");
  ExpectError(7, ErrorCode::kRingFull, "at most 2");
}

TEST_F(RpcDispatcherTest, ForAClientThatDoesNotReadAnswersWaitAndThenCallsDo) {
  // An answer is larger than its call: the ring to the client fills first.
  for (uint64_t id = 1; id <= 2'000; ++id) {
    Call(rpc::MethodId::GetEntity, id, [&] {
      rpc::GetEntityRequestT request;
      request.name = std::string(200, 'n');
      return request;
    }());
    (void)connection_.Poll(0);
    if (to_engine_.write_pos() != to_engine_.read_pos()) break;
  }
  EXPECT_NE(to_engine_.write_pos(), to_engine_.read_pos());
  EXPECT_FALSE(connection_.Poll(0));  // otherwise the engine would spin
  EXPECT_NE(connection_.DueNs(0), std::nullopt);
  // The client reads again: no answer is lost.
  uint64_t expected = 0;
  for (int quiet = 0; quiet < 3;) {
    if (answers_.Next() == Got::kEnvelope) {
      EXPECT_EQ(answers_.envelope().correlation_id(), ++expected);
      quiet = 0;
    } else {
      (void)connection_.Poll(0);
      ++quiet;
    }
  }
  EXPECT_GT(expected, 100u);
  EXPECT_EQ(to_engine_.write_pos(), to_engine_.read_pos());
}

TEST_F(RpcDispatcherTest, BrokenRingIsNotPolledAgain) {
  to_engine_.SetPositions(5, 0);
  EXPECT_FALSE(connection_.Poll(0));
  EXPECT_TRUE(connection_.broken());
  EXPECT_FALSE(connection_.Poll(0));
  EXPECT_EQ(connection_.DueNs(0), std::nullopt);
}

TEST_F(RpcDispatcherTest, StreamsEndWithTheirClient) {
  Call(rpc::MethodId::StreamTelemetry, 5, rpc::StreamTelemetryRequestT());
  (void)connection_.Poll(1000 * kMs);
  connection_.End();
  EXPECT_FALSE(connection_.IsOpen());
  EXPECT_FALSE(connection_.Poll(2000 * kMs));
  EXPECT_EQ(connection_.DueNs(0), std::nullopt);
}

}  // namespace
}  // namespace tandem

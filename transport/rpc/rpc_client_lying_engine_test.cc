// RpcClient with an engine that writes invalid data.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/ring_header.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/ring/ring.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc_client.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Pack(const rpc::EnvelopeT& envelope) {
  flatbuffers::FlatBufferBuilder builder;
  rpc::FinishEnvelopeBuffer(builder, rpc::CreateEnvelope(builder, &envelope));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

Bytes Answer(uint64_t id, uint32_t entities) {
  rpc::GetSceneInfoResponseT response;
  response.entity_count = entities;
  rpc::EnvelopeT answer;
  answer.method = rpc::MethodId::GetSceneInfo;
  answer.correlation_id = id;
  answer.payload.Set(response);
  return Pack(answer);
}

// `whole` from `begin` to `end`, as piece `index` of `count`.
Bytes Piece(uint64_t id, uint32_t index, uint32_t count, const Bytes& whole,
            size_t begin, size_t end) {
  rpc::FragmentT fragment;
  fragment.index = index;
  fragment.count = count;
  fragment.total_bytes = whole.size();
  fragment.data.assign(whole.begin() + static_cast<ptrdiff_t>(begin),
                       whole.begin() + static_cast<ptrdiff_t>(end));
  rpc::EnvelopeT envelope;
  envelope.correlation_id = id;
  envelope.payload.Set(std::move(fragment));
  return Pack(envelope);
}

// An answer without a call. It is quick to write and slow to verify: it refers
// to one table many times.
Bytes SlowToRead() {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<rpc::EntityInfo>> entities(
      25'000, rpc::CreateEntityInfo(builder));
  const auto all = builder.CreateVector(entities);
  const auto response = rpc::CreateListEntitiesResponse(builder, all);
  rpc::EnvelopeBuilder envelope(builder);
  envelope.add_correlation_id(1'000'000);
  envelope.add_payload_type(rpc::Payload::ListEntitiesResponse);
  envelope.add_payload(response.Union());
  rpc::FinishEnvelopeBuffer(builder, envelope.Finish());
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

// On its own thread, passes each call to `Liar`, with the ring to the client.
// With `deaf`, it reads no call at all.
class LyingEngine {
 public:
  using Liar = std::function<void(uint64_t id, RingWriter& ring)>;

  LyingEngine(const std::string& name, uint32_t ring_bytes, Liar liar,
              bool deaf)
      : side_(EngineSide::Create(name,
                                 {.num_envs = 1,
                                  .obs_size = 1,
                                  .act_size = 1,
                                  .ring_bytes = ring_bytes,
                                  .task = "lies"},
                                 {})
                  .value()),
        liar_(std::move(liar)),
        deaf_(deaf) {
    EXPECT_TRUE(side_.Open().ok());
    thread_ = std::thread([this] { Serve(); });
  }
  ~LyingEngine() {
    side_.RequestStop();
    thread_.join();
  }

 private:
  void Serve() {
    for (;;) {
      switch (side_.Next(Deadline::After(0.001))) {
        case EngineEvent::kStopRequested:
          return;
        case EngineEvent::kClientArrived:
          side_.AcknowledgeAttach(absl::OkStatus());
          reader_.emplace(side_.RpcRingReader().value(),
                          EnvelopeReader::Limits());
          writer_.emplace(side_.RpcRingWriter().value());
          break;
        default:
          break;
      }
      while (!deaf_ && reader_ &&
             reader_->Next() == EnvelopeReader::Got::kEnvelope) {
        liar_(reader_->envelope().correlation_id(), *writer_);
      }
    }
  }

  EngineSide side_;
  Liar liar_;
  const bool deaf_;
  std::optional<EnvelopeReader> reader_;
  std::optional<RingWriter> writer_;
  std::thread thread_;
};

class RpcClientLyingEngineTest : public testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override {
    stop_ = true;
    client_.reset();
    side_.reset();
    engine_.reset();
    alarm(0);
  }

  void Start(LyingEngine::Liar liar, RpcClient::Options options = {},
             uint32_t ring_bytes = 4096, bool deaf = false) {
    engine_ =
        std::make_unique<LyingEngine>(name_, ring_bytes, std::move(liar), deaf);
    side_.emplace(ClientSide::Attach(name_, {}).value());
    client_ = RpcClient::Create(&*side_, options).value();
  }
  // Writes until the test ends.
  LyingEngine::Liar Flood() {
    return [this](uint64_t, RingWriter& ring) {
      const Bytes unclaimed = SlowToRead();
      while (!stop_) {
        (void)ring.TryWrite(std::as_bytes(std::span(unclaimed)));
      }
    };
  }
  static void Write(RingWriter& ring, const Bytes& bytes) {
    EXPECT_EQ(ring.TryWrite(std::as_bytes(std::span(bytes))), ErrorCode::kOk);
  }
  static rpc::EnvelopeT SceneInfo() {
    rpc::EnvelopeT call;
    call.method = rpc::MethodId::GetSceneInfo;
    call.payload.Set(rpc::GetSceneInfoRequestT());
    return call;
  }
  // Expects an answer with `entities` entities.
  void ExpectAnswer(uint32_t entities) {
    const absl::StatusOr<RpcMessage> answer =
        client_->Call(SceneInfo(), Deadline::After(20));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(
        answer->envelope().payload_as_GetSceneInfoResponse()->entity_count(),
        entities);
  }
  void ExpectUnreadable(const std::string& text,
                        ErrorCode code = ErrorCode::kEngineFailed) {
    const absl::Status status =
        client_->Call(SceneInfo(), Deadline::After(20)).status();
    EXPECT_EQ(CodeOf(status), code);
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }

  const std::string name_ = UniqueRegionName("lying_engine");
  std::atomic<bool> stop_{false};
  std::unique_ptr<LyingEngine> engine_;
  std::optional<ClientSide> side_;
  std::unique_ptr<RpcClient> client_;
};

TEST_F(RpcClientLyingEngineTest, SkipsInvalidEnvelopes) {
  Start([](uint64_t id, RingWriter& ring) {
    Bytes cut = Answer(id, 1);
    cut.resize(cut.size() / 2);
    Bytes other = Answer(id, 1);
    std::copy_n("ABCD", 4, other.begin() + 4);  // Another schema's identifier.
    for (const Bytes& bytes : {Bytes(), Bytes(1), Bytes(1000, 0xff), cut}) {
      Write(ring, bytes);
    }
    Write(ring, other);
    Write(ring, Answer(id, 7));
  });
  for (int i = 0; i < 3; ++i) ExpectAnswer(7);
}

TEST_F(RpcClientLyingEngineTest, UnknownErrorCodeReachesTheCaller) {
  // A later version may define the code; the caller knows its request.
  Start([](uint64_t id, RingWriter& ring) {
    rpc::EnvelopeT answer;
    answer.method = static_cast<rpc::MethodId>(65'000);
    answer.correlation_id = id;
    answer.error_code = 65'000;
    answer.error_message = "in a word of tomorrow";
    Write(ring, Pack(answer));
  });
  const absl::Status status =
      client_->Call(SceneInfo(), Deadline::After(20)).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
  EXPECT_EQ(status.message(), "in a word of tomorrow");
}

TEST_F(RpcClientLyingEngineTest, TheFirstOfTwoAnswersCounts) {
  uint32_t calls = 0;
  Start([&](uint64_t id, RingWriter& ring) {
    ++calls;
    Write(ring, Answer(id, calls));
    Write(ring, Answer(id, 1000 + calls));
    Write(ring, Answer(id + 1, 2000));  // No call has this id yet.
    Write(ring, Answer(0, 3000));
  });
  for (uint32_t i = 1; i <= 20; ++i) {
    const auto answer = client_->Call(SceneInfo(), Deadline::After(20));
    ASSERT_TRUE(answer.ok()) << answer.status();
    const uint32_t entities =
        answer->envelope().payload_as_GetSceneInfoResponse()->entity_count();
    // An answer sent before its call is either dropped or accepted.
    EXPECT_TRUE(entities == i || entities == 2000) << entities;
  }
  engine_.reset();  // Ends the liar before its variables.
}

TEST_F(RpcClientLyingEngineTest, UnreadableAnswerFailsItsCallAtOnce) {
  uint32_t calls = 0;
  Start([&](uint64_t id, RingWriter& ring) {
    const Bytes whole = Answer(id, 1);
    const Bytes too_large = [&] {
      rpc::FragmentT fragment;
      fragment.count = 1000;
      fragment.total_bytes = uint64_t{1} << 40;
      fragment.data.resize(10);
      rpc::EnvelopeT envelope;
      envelope.correlation_id = id;
      envelope.payload.Set(std::move(fragment));
      return Pack(envelope);
    }();
    switch (++calls) {
      case 1:  // The first is missing.
        Write(ring, Piece(id, 1, 2, whole, 10, whole.size()));
        return;
      case 2:  // One in the middle is missing.
        Write(ring, Piece(id, 0, 3, whole, 0, 10));
        Write(ring, Piece(id, 2, 3, whole, 20, whole.size()));
        return;
      case 3:  // Out of order.
        Write(ring, Piece(id, 0, 3, whole, 0, 10));
        Write(ring, Piece(id, 2, 3, whole, 20, whole.size()));
        Write(ring, Piece(id, 1, 3, whole, 10, 20));
        return;
      case 4:  // Another call's piece is among them.
        Write(ring, Piece(id + 1, 0, 2, whole, 0, 10));
        Write(ring, Piece(id, 1, 2, whole, 10, whole.size()));
        return;
      case 5:  // Too large.
        Write(ring, too_large);
        return;
      case 6: {  // Complete, but not an envelope.
        Write(ring, Piece(id, 0, 1, Bytes(100, 0xff), 0, 100));
        return;
      }
      default:  // Valid.
        Write(ring, Piece(id, 0, 2, whole, 0, 10));
        Write(ring, Piece(id, 1, 2, whole, 10, whole.size()));
    }
  });
  ExpectUnreadable("expected piece 0");
  ExpectUnreadable("expected piece 1 of 3");
  ExpectUnreadable("expected piece 1 of 3");
  ExpectUnreadable("expected piece 1 of 2");
  ExpectUnreadable("expected an envelope of 1 to", ErrorCode::kMessageTooLarge);
  ExpectUnreadable("expected an Envelope in 1 pieces");
  ExpectAnswer(1);
  engine_.reset();  // Ends the liar before its variables.
}

// A ring that takes many time slices to read.
constexpr uint32_t kFloodedRingBytes = 8 * 1024 * 1024;

TEST_F(RpcClientLyingEngineTest, FloodOfUnknownAnswersDelaysNoDeadline) {
  Start(Flood(), {}, kFloodedRingBytes);
  EXPECT_EQ(CodeOf(client_->Call(SceneInfo(), Deadline::After(0.1)).status()),
            ErrorCode::kStepTimeout);
}

TEST_F(RpcClientLyingEngineTest, FloodOfUnknownAnswersHidesNoInterrupt) {
  Start(Flood(), {.interrupted = [] { return true; }}, kFloodedRingBytes);
  EXPECT_EQ(CodeOf(client_->Call(SceneInfo(), Deadline::Infinite()).status()),
            ErrorCode::kInterrupted);
}

TEST_F(RpcClientLyingEngineTest, CountsUnreadableStreamItems) {
  Start([](uint64_t id, RingWriter& ring) {
    const Bytes whole = Answer(id, 1);
    Write(ring, Piece(id, 1, 2, whole, 10, whole.size()));
    Write(ring, Answer(id, 5));
  });
  const uint64_t stream = client_->Open(SceneInfo()).value();
  const auto item = client_->Next(stream, Deadline::After(20));
  ASSERT_TRUE(item.ok() && item->has_value());
  EXPECT_EQ(client_->Dropped(stream), 1u);
}

TEST_F(RpcClientLyingEngineTest, DropsItemsAfterAStreamsEnd) {
  Start([](uint64_t id, RingWriter& ring) {
    rpc::EnvelopeT last;
    last.correlation_id = id;
    last.end_of_stream = true;
    Write(ring, Pack(last));
    Write(ring, Answer(id, 5));
    Write(ring, Pack(last));
  });
  const uint64_t stream = client_->Open(SceneInfo()).value();
  for (int i = 0; i < 3; ++i) {
    const auto item = client_->Next(stream, Deadline::After(20));
    ASSERT_TRUE(item.ok());
    EXPECT_FALSE(item->has_value());
  }
}

TEST_F(RpcClientLyingEngineTest, ABrokenRingEndsEveryCall) {
  Start([this](uint64_t, RingWriter&) {
    std::byte* const base =
        reinterpret_cast<std::byte*>(side_->mapping()->header());
    auto* const ring = reinterpret_cast<RingHeader*>(
        base + side_->mapping()->header()->cmd_s2c_offset);
    ring->write_pos.store(3, std::memory_order_release);
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(CodeOf(client_->Call(SceneInfo(), Deadline::Infinite()).status()),
              ErrorCode::kBrokenPeer);
  }
  EXPECT_EQ(CodeOf(client_->Open(SceneInfo()).status()),
            ErrorCode::kBrokenPeer);
}

TEST_F(RpcClientLyingEngineTest, EngineThatReadsNothingCostsOnlyWaits) {
  Start([](uint64_t, RingWriter&) {}, {}, 4096, /*deaf=*/true);
  rpc::GetEntityRequestT request;
  request.name = std::string(300'000, 'n');
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetEntity;
  call.payload.Set(std::move(request));
  // Each call leaves an unsent message, until the client refuses another call.
  int opened = 0;
  while (opened < 100 && client_->Open(call).ok()) ++opened;
  EXPECT_LE(opened, 4);
  EXPECT_EQ(CodeOf(client_->Open(call).status()), ErrorCode::kRingFull);
  EXPECT_EQ(CodeOf(client_->Call(call, Deadline::After(0.03)).status()),
            ErrorCode::kStepTimeout);
}

TEST_F(RpcClientLyingEngineTest, ReportsARingTooSmallForFragments) {
  Start([](uint64_t, RingWriter&) {}, {}, kMinRingBytes);
  EXPECT_EQ(CodeOf(client_->Call(SceneInfo(), Deadline::Infinite()).status()),
            ErrorCode::kMessageTooLarge);
}

}  // namespace
}  // namespace tandem

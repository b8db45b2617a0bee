// Fuzz target of RpcDispatcher. The input is a script of what a client does:
//  - It sends calls of every kind, valid or with bytes overwritten, whole or in
//    fragments, faster or slower than it reads the answers.
//  - It leaves, and another client comes.
//  - Time passes.
//
// Data flow: bytes -> calls -> RpcDispatcher -> abort on one of these:
//  - a call has no answer, or two
//  - an answer is out of order, or is not a valid envelope
//  - a stream continues after its end
//
//   bazel run --config=fuzz //engine_adapter/rpc:rpc_dispatcher_fuzz --
//       -max_total_time=60
//
// rpc_dispatcher_fuzz_test runs the same function over
// engine_adapter/rpc/corpus and over random scripts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/rpc/rpc_dispatcher.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

using Got = EnvelopeReader::Got;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kRingBytes = 2048;
constexpr EnvelopeReader::Limits kLimits = {.max_envelope_bytes = 16 * 1024,
                                            .max_depth = 16,
                                            .max_tables = 1000,
                                            .max_unpacked_bytes = 1 << 20};

// The upper half of an id is the kind of its call. The kinds differ in many
// bits, so overwriting a few bytes does not make one kind into another, nor a
// dishonest call into an honest one.
enum Kind : uint64_t {
  kAtOnce = 0x1111111100000000,
  kLater = 0x2222222200000000,
  kStream = 0x4444444400000000,
  kDishonest = 0x8888888800000000,
};
Kind KindOf(uint64_t id) { return static_cast<Kind>(id & 0xFFFFFFFF00000000); }

Bytes Pack(const rpc::EnvelopeT& envelope) {
  flatbuffers::FlatBufferBuilder builder;
  rpc::FinishEnvelopeBuffer(builder, rpc::CreateEnvelope(builder, &envelope));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

// The engine's services and the client's view of them.
class Session {
 public:
  explicit Session(Script& script) : script_(script) {
    dispatcher_.Serve<rpc::GetEntityRequestT, rpc::GetEntityResponseT>(
        rpc::MethodId::GetEntity, GetEntity);
    dispatcher_.Serve<rpc::SendControlRequestT, rpc::SendControlResponseT>(
        rpc::MethodId::SendControl, SendControl);
    dispatcher_.ServeLater<rpc::SingleStepRequestT, rpc::SingleStepResponseT>(
        rpc::MethodId::SingleStep,
        [this](const rpc::SingleStepRequestT&,
               RpcAnswer<rpc::SingleStepResponseT> answer) {
          at_work_.push_back(std::move(answer));
        });
    dispatcher_.ServeStream<rpc::StreamTelemetryRequestT>(
        rpc::MethodId::StreamTelemetry,
        [this](const rpc::StreamTelemetryRequestT& request) {
          return absl::StatusOr<RpcStream>(
              {.hz = static_cast<double>(request.target_fps),
               .next = [this] { return NextItems(); }});
        });
    dispatcher_.SwitchOff(rpc::MethodId::Draw, "switched off");
    Begin();
  }

  void Act() {
    switch (script_.Byte() % 10) {
      case 0:
        Poll();
        break;
      case 1:
        now_ns_ += int64_t{script_.Byte()} * 1'000'000;
        Poll();
        break;
      case 2:
        for (int i = script_.Byte() % 8; i > 0; --i) ReadOne();
        break;
      case 3:
        AnswerOneLate();
        break;
      case 4:
        CallDishonestly();
        break;
      case 5:
        if (script_.Byte() % 16 == 0) Begin();
        break;
      default:
        Call();
    }
  }

  // Reads all answers, and checks that no call is unanswered.
  void Finish() {
    while (!at_work_.empty()) AnswerOneLate();
    // No new calls come, and the clock stands still, so streams send no items.
    // This loop runs until the rings and queues are empty.
    int quiet = 0;
    while (quiet < 2) {
      const bool more = connection_.Poll(now_ns_);
      while (!at_work_.empty()) AnswerOneLate();
      quiet = ReadOne() || more || calls_.queued_bytes() > 0 ? 0 : quiet + 1;
      (void)calls_.Pump();
    }
    Require(waiting_.empty(), "a call was not answered");
    Require(late_.empty(), "a late call was not answered");
    Require(!connection_.broken(), "whole rings are called broken");
    Require(to_engine_.CanariesLive() && to_client_.CanariesLive(),
            "something beside the ring was written");
  }

 private:
  static absl::StatusOr<rpc::GetEntityResponseT> GetEntity(
      const rpc::GetEntityRequestT& request) {
    if (request.name.size() % 2 == 1) {
      return MakeError(ErrorCode::kInvalidArgument, request.name);
    }
    rpc::GetEntityResponseT response;
    response.entity = std::make_unique<rpc::EntityInfoT>();
    response.entity->name = request.name;
    return response;
  }
  static absl::StatusOr<rpc::SendControlResponseT> SendControl(
      const rpc::SendControlRequestT& request) {
    rpc::SendControlResponseT response;
    for (const auto& named : request.named) {
      if (named) response.rejected_actuators.push_back(named->actuator_name);
    }
    return response;
  }
  absl::StatusOr<std::vector<rpc::PayloadUnion>> NextItems() {
    const uint8_t kind = script_.Byte();
    if (kind % 16 == 15) return MakeError(ErrorCode::kEngineFailed, "no more");
    std::vector<rpc::PayloadUnion> items(kind % 3);
    for (rpc::PayloadUnion& item : items) {
      rpc::TelemetryFrameT frame;
      frame.observation_qpos.resize(kind);
      item.Set(std::move(frame));
    }
    return items;
  }

  // The previous client leaves, and a new one attaches.
  void Begin() {
    connection_.End();
    Require(!connection_.Poll(now_ns_) && connection_.IsQuiet(),
            "something is left of a client that left");
    to_engine_.SetPositions(0, 0);
    to_client_.SetPositions(0, 0);
    calls_ = EnvelopeWriter(to_engine_.Writer());
    answers_ = EnvelopeReader(to_client_.Reader(), {});
    waiting_.clear();
    late_.clear();
    given_up_.clear();
    streams_.clear();
    connection_.Begin(EnvelopeReader(to_engine_.Reader(), kLimits),
                      EnvelopeWriter(to_client_.Writer()));
  }

  void Poll() {
    (void)calls_.Pump();
    (void)connection_.Poll(now_ns_);
  }

  void AnswerOneLate() {
    if (at_work_.empty()) return;
    const RpcAnswer<rpc::SingleStepResponseT> answer =
        std::move(at_work_.front());
    at_work_.pop_front();
    answer(rpc::SingleStepResponseT());
    answer(rpc::SingleStepResponseT());  // has no effect
  }

  // Returns a valid call, or one with an error that a correct client may make.
  rpc::EnvelopeT Honest(bool may_give_up) {
    rpc::EnvelopeT call;
    call.correlation_id = ++last_id_;
    switch (script_.Byte() % 7) {
      case 0: {
        rpc::GetEntityRequestT request;
        request.name = std::string(size_t{script_.Byte()} * 16, 'n');
        call.method = rpc::MethodId::GetEntity;
        call.payload.Set(std::move(request));
        call.correlation_id |= kAtOnce;
        break;
      }
      case 1: {
        rpc::SendControlRequestT request;
        for (int i = script_.Byte() % 16; i > 0; --i) {
          request.named.push_back(std::make_unique<rpc::NamedControlEntryT>());
          request.named.back()->actuator_name = "hip";
        }
        call.method = rpc::MethodId::SendControl;
        call.payload.Set(std::move(request));
        call.correlation_id |= kAtOnce;
        break;
      }
      case 2:
        call.method = rpc::MethodId::SingleStep;
        call.payload.Set(rpc::SingleStepRequestT());
        call.correlation_id |= kLater;
        break;
      case 3: {
        rpc::StreamTelemetryRequestT request;
        request.target_fps = script_.Byte() % 4 * 1'000'000'000U;
        call.method = rpc::MethodId::StreamTelemetry;
        call.payload.Set(request);
        call.correlation_id |= kStream;
        break;
      }
      case 4: {
        rpc::CancelStreamRequestT request;
        const uint64_t number =
            last_id_ - std::min<uint64_t>(script_.Byte(), last_id_);
        request.correlation_id = kStream | number;
        call.correlation_id |= kAtOnce;
        if (may_give_up && late_.contains(kLater | number)) {
          request.correlation_id = kLater | number;
          given_up_[call.correlation_id] = request.correlation_id;
        }
        call.method = rpc::MethodId::CancelStream;
        call.payload.Set(request);
        break;
      }
      case 5:  // unknown, off, or not served
        call.method = static_cast<rpc::MethodId>(script_.Byte());
        if (call.method == rpc::MethodId::SingleStep ||
            call.method == rpc::MethodId::StreamTelemetry) {
          call.method = rpc::MethodId::NONE;
        }
        call.correlation_id |= kAtOnce;
        break;
      default:  // the payload of another method
        call.method = rpc::MethodId::GetEntity;
        call.payload.Set(rpc::DebugDrawRequestT());
        call.correlation_id |= kAtOnce;
        break;
    }
    return call;
  }

  void Call() {
    const rpc::EnvelopeT call = Honest(/*may_give_up=*/true);
    const uint64_t id = call.correlation_id;
    const Bytes bytes = Pack(call);
    for (int times = script_.Byte() % 16 == 0 ? 2 : 1; times > 0; --times) {
      (void)calls_.Post(bytes, id);
      if (KindOf(id) == kAtOnce) waiting_.push_back(id);
      if (KindOf(id) == kLater) ++late_[id];
      if (KindOf(id) == kStream) ++streams_[id].calls;
    }
  }

  void CallDishonestly() {
    rpc::EnvelopeT call;
    if (script_.Byte() % 4 == 0) {
      rpc::FragmentT piece;
      piece.index = script_.Byte() % 4;
      piece.count = script_.Byte() % 4;
      piece.total_bytes = uint64_t{script_.Byte()} << script_.Byte() % 48;
      piece.data.resize(script_.Byte());
      call.payload.Set(std::move(piece));
    } else {
      call = Honest(/*may_give_up=*/false);
    }
    call.correlation_id = kDishonest | (call.correlation_id & 0xFF);
    Bytes bytes = Pack(call);
    for (int i = script_.Byte() % 4; i > 0; --i) {
      const size_t at = size_t{script_.Byte()} << 8 | script_.Byte();
      bytes[at % bytes.size()] = script_.Byte();
    }
    if (script_.Byte() % 8 == 0) bytes.resize(bytes.size() / 2);
    (void)calls_.Post(bytes, call.correlation_id);
  }

  // Reads one entry. Returns whether there was one.
  bool ReadOne() {
    const Got got = answers_.Next();
    Require(got == Got::kNothing || got == Got::kPiece || got == Got::kEnvelope,
            "an answer cannot be read");
    if (got == Got::kEnvelope) Compare(answers_.envelope());
    return got != Got::kNothing;
  }

  void Compare(const rpc::Envelope& answer) {
    const uint64_t id = answer.correlation_id();
    Require(id != 0, "an answer belongs to no call");
    if (KindOf(id) == kAtOnce) {
      Require(!waiting_.empty() && waiting_.front() == id,
              "an answer is out of turn, or comes twice");
      waiting_.pop_front();
      const auto* const cancel = answer.payload_as_CancelStreamResponse();
      if (cancel != nullptr && cancel->success() && given_up_.contains(id)) {
        CompareLate(given_up_[id]);
      }
    } else if (KindOf(id) == kLater) {
      CompareLate(id);
    } else if (KindOf(id) == kStream) {
      CompareItem(answer, &streams_[id]);
    }
  }

  // Removes a late call: it has its answer, or was cancelled.
  void CompareLate(uint64_t id) {
    const auto call = late_.find(id);
    Require(call != late_.end(), "a late answer comes twice, or to no call");
    if (--call->second == 0) late_.erase(call);
  }

  struct Stream {
    int calls = 0;  // that requested this stream
    int words = 0;  // answers that ended the stream or refused a call
    uint64_t items = 0;
  };
  void CompareItem(const rpc::Envelope& answer, Stream* stream) {
    if (answer.stream_number() == 0) {
      Require(++stream->words <= stream->calls, "a stream ended twice");
      if (answer.end_of_stream()) stream->items = 0;
      return;
    }
    Require(stream->words < stream->calls, "a stream goes on after its end");
    Require(answer.stream_number() > stream->items, "an item comes twice");
    stream->items = answer.stream_number();
  }

  Script& script_;
  TestRegion to_engine_{kRingBytes};
  TestRegion to_client_{kRingBytes};
  RpcDispatcher dispatcher_;
  RpcConnection connection_{&dispatcher_,
                            {.calls_per_poll = 4,
                             .streams = 3,
                             .stream_hz = 100,
                             .late_calls = 3,
                             .waiting_bytes = 8 * 1024}};
  std::deque<RpcAnswer<rpc::SingleStepResponseT>> at_work_;
  int64_t now_ns_ = 1'000'000'000;

  EnvelopeWriter calls_{to_engine_.Writer()};
  EnvelopeReader answers_{to_client_.Reader(), {}};
  uint64_t last_id_ = 0;
  std::deque<uint64_t> waiting_;           // calls that are answered in order
  std::map<uint64_t, int> late_;           // late calls: id -> unanswered ones
  std::map<uint64_t, uint64_t> given_up_;  // cancelling call -> cancelled call
  std::map<uint64_t, Stream> streams_;
};

}  // namespace

void FuzzDispatcher(const uint8_t* data, size_t size) {
  Script script(data, size);
  Session session(script);
  while (!script.AtEnd()) session.Act();
  session.Finish();
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::FuzzDispatcher(data, size);
  return 0;
}

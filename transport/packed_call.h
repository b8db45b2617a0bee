// PackedCall: a request as the bytes that the ring transports.
//
// Data flow: a payload in a builder, or plain structs -> PackedCall ->
// RpcClient, which sets the correlation id -> EnvelopeWriter.
//
//   flatbuffers::FlatBufferBuilder builder;
//   const auto request = rpc::CreateGetSceneInfoRequest(builder);
//   client.Call(PackedCall(&builder, rpc::MethodId::GetSceneInfo,
//                          rpc::Payload::GetSceneInfoRequest,
//                          request.Union()), deadline);

#ifndef TANDEM_TRANSPORT_PACKED_CALL_H_
#define TANDEM_TRANSPORT_PACKED_CALL_H_

#include <cstdint>
#include <span>

#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Movable. The bytes are an Envelope without an error.
class PackedCall {
 public:
  // Takes the content of `builder`, which is empty afterwards.
  PackedCall(flatbuffers::FlatBufferBuilder* builder, rpc::MethodId method,
             rpc::Payload type, flatbuffers::Offset<void> payload)
      : bytes_(Finish(builder, method, type, payload)) {}

  // Packs a call of plain structs; ignores its correlation id.
  // NOLINTNEXTLINE(google-explicit-constructor)
  PackedCall(const rpc::EnvelopeT& call) {
    flatbuffers::FlatBufferBuilder builder;
    const auto payload = call.payload.Pack(builder);
    bytes_ = Finish(&builder, call.method, call.payload.type, payload);
  }

  void SetCorrelationId(uint64_t id) {
    flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes_.data())
        ->SetField(rpc::Envelope::VT_CORRELATION_ID, id, uint64_t{0});
  }
  std::span<const uint8_t> bytes() const {
    return {bytes_.data(), bytes_.size()};
  }

 private:
  static flatbuffers::DetachedBuffer Finish(
      flatbuffers::FlatBufferBuilder* builder, rpc::MethodId method,
      rpc::Payload type, flatbuffers::Offset<void> payload) {
    // Not 0: FlatBuffers does not store a field with its default.
    constexpr uint64_t kToBeSet = ~uint64_t{0};
    rpc::FinishEnvelopeBuffer(
        *builder,
        rpc::CreateEnvelope(*builder, method, kToBeSet, 0, type, payload));
    return builder->Release();
  }

  flatbuffers::DetachedBuffer bytes_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_PACKED_CALL_H_

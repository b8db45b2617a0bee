// Envelopes as bytes: PackedCall, a request that a program makes, and
// AlignedEnvelope, a verified one from bytes at any address.
//
// Data flow: a payload in a builder, or plain structs -> PackedCall ->
// RpcClient, which sets the correlation id -> the ring. A program's bytes ->
// AlignedEnvelope -> rpc::Envelope.
// Ownership: each owns its bytes.
//
//   flatbuffers::FlatBufferBuilder builder;
//   const auto request = rpc::CreateGetSceneInfoRequest(builder);
//   client.Call(PackedCall(&builder, rpc::MethodId::GetSceneInfo,
//                          rpc::Payload::GetSceneInfoRequest,
//                          request.Union()), deadline);
//
//   const AlignedEnvelope envelope(bytes);
//   if (envelope.get() == nullptr) return NotAnEnvelope();

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// The most that both ends of the RPC rings allow for an envelope in pieces:
// EnvelopeWriter refuses a larger one, EnvelopeReader drops it.
inline constexpr size_t kMaxEnvelopeBytes = size_t{64} * 1024 * 1024;

// For bytes of a program's user: FlatBuffers ends the process at 2 GiB.
// kMessageTooLarge with this text.
inline absl::Status CheckEnvelopeBytes(uint64_t bytes, absl::string_view what,
                                       absl::string_view next) {
  if (bytes <= kMaxEnvelopeBytes) return absl::OkStatus();
  return MakeError(ErrorCode::kMessageTooLarge,
                   absl::StrCat(what, ": expected at most ", kMaxEnvelopeBytes,
                                " bytes, found ", bytes, "; ", next));
}

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

class AlignedEnvelope {
 public:
  // FlatBuffers' own limit. A larger envelope is not read.
  static constexpr uint64_t kMaxBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

  // Copies: FlatBuffers are aligned. Allocates.
  explicit AlignedEnvelope(std::span<const uint8_t> bytes) {
    if (bytes.empty() || bytes.size() > kMaxBytes) return;
    words_.resize((bytes.size() + 7) / 8);
    std::memcpy(words_.data(), bytes.data(), bytes.size());
    flatbuffers::Verifier verifier(
        reinterpret_cast<const uint8_t*>(words_.data()), bytes.size());
    if (rpc::VerifyEnvelopeBuffer(verifier)) {
      envelope_ = rpc::GetEnvelope(words_.data());
    }
  }
  AlignedEnvelope(const AlignedEnvelope&) = delete;
  AlignedEnvelope& operator=(const AlignedEnvelope&) = delete;

  // nullptr: the bytes are no Envelope.
  const rpc::Envelope* get() const { return envelope_; }

 private:
  std::vector<uint64_t> words_;
  const rpc::Envelope* envelope_ = nullptr;
};

}  // namespace tandem

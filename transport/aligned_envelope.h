// AlignedEnvelope: a verified Envelope from bytes at any address.
//
// Data flow: a program's bytes -> an aligned copy -> Envelope.
//
//   const AlignedEnvelope envelope(bytes);
//   if (envelope.get() == nullptr) return NotAnEnvelope();

#ifndef TANDEM_TRANSPORT_ALIGNED_ENVELOPE_H_
#define TANDEM_TRANSPORT_ALIGNED_ENVELOPE_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

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

#endif  // TANDEM_TRANSPORT_ALIGNED_ENVELOPE_H_

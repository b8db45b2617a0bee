// EnvelopeReader: returns complete, verified envelopes from an RPC ring.
//
// Data flow: ring entry -> a copy -> FlatBuffers' verifier -> an Envelope;
// Fragments are joined first.
// Ownership: one side of a session; the ring must outlive the reader.
//
//   EnvelopeReader reader(*std::move(ring), {});
//   switch (reader.Next()) {
//     case EnvelopeReader::Got::kEnvelope: Handle(reader.envelope()); break;
//     ...
//   }
//
// The peer is untrusted. An entry that is no envelope, exceeds the limits, or
// lacks pieces is dropped and counted; later entries are still read. Only a
// ring with invalid positions ends the session (kBrokenPeer).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/ring/ring.h"

namespace tandem {

// Not thread-safe. Allocates memory for one ring entry, and for the received
// pieces of an envelope, not for announced ones. The maximum is a small
// multiple of max_envelope_bytes.
class EnvelopeReader {
 public:
  struct Limits {
    // The maximum of an envelope in pieces.
    size_t max_envelope_bytes = kMaxEnvelopeBytes;
    // Limits of FlatBuffers' verifier.
    uint32_t max_depth = 16;
    uint32_t max_tables = 1'000'000;
    // The maximum of the unpacked fields. They take more than the envelope if
    // it refers to one string many times.
    uint64_t max_unpacked_bytes = uint64_t{256} * 1024 * 1024;
  };

  EnvelopeReader(RingReader ring, const Limits& limits);

  enum class [[nodiscard]] Got{
      kNothing,     // the ring is empty
      kEnvelope,    // see envelope()
      kPiece,       // a piece of a large envelope; call Next again
      kDropped,     // an invalid entry; see problem()
      kBrokenPeer,  // permanently
  };

  // Takes the next entry. Does not wait; makes a system call only to wake a
  // sleeping peer.
  Got Next();

  // The envelope after kEnvelope, valid until the next call; never a
  // Fragment's. It is verified: each field may be read and unpacked. Its values
  // are untrusted.
  const rpc::Envelope& envelope() const { return *envelope_; }

  // The envelope's bytes, for a copy.
  std::span<const uint64_t> envelope_words() const { return envelope_words_; }

  // After kDropped: the expected and the found content, and the call's
  // correlation id, or 0 if it is unknown.
  const std::string& problem() const { return problem_; }
  uint64_t problem_correlation_id() const { return problem_correlation_id_; }
  // kMessageTooLarge: it exceeds a limit in bytes. Else kInvalidArgument.
  ErrorCode problem_code() const { return problem_code_; }

  // The number of entries dropped so far.
  uint64_t dropped() const { return dropped_; }

 private:
  // Returns the envelope if it is valid, else nullptr.
  const rpc::Envelope* Verified(std::span<const uint8_t> bytes) const;
  Got HandOut(const rpc::Envelope& found, std::span<const uint64_t> words);
  Got TakePiece(const rpc::Envelope& piece);
  Got Drop(uint64_t correlation_id, std::string problem,
           ErrorCode code = ErrorCode::kInvalidArgument);
  void ForgetPieces();

  RingReader ring_;
  Limits limits_;
  std::vector<uint64_t> entry_;  // 8-byte words, since FlatBuffers are aligned
  const rpc::Envelope* envelope_ = nullptr;
  std::span<const uint64_t> envelope_words_;
  std::string problem_;
  uint64_t problem_correlation_id_ = 0;
  ErrorCode problem_code_ = ErrorCode::kInvalidArgument;
  uint64_t dropped_ = 0;

  // The envelope whose pieces arrive; empty: none.
  std::vector<uint64_t> whole_;
  uint64_t whole_bytes_ = 0;
  uint64_t whole_id_ = 0;
  uint32_t pieces_ = 0;
  uint32_t next_piece_ = 0;
  uint64_t filled_bytes_ = 0;
};

}  // namespace tandem

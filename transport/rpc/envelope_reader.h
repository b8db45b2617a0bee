// EnvelopeReader: takes complete, verified envelopes from an RPC ring.
//
// Data flow: ring entry -> copied out -> FlatBuffers' verifier -> an Envelope;
// Fragments are put together first.
// Ownership: one side of a session; the ring outlives the reader.
//
//   EnvelopeReader reader(*std::move(ring), {});
//   switch (reader.Next()) {
//     case EnvelopeReader::Got::kEnvelope: Handle(reader.envelope()); break;
//     ...
//   }
//
// The peer is not trusted. What is no envelope, is one beyond the limits, or
// lacks pieces is dropped and counted, and what follows is read on. Only a ring
// whose positions are invalid ends the session (kBrokenPeer).

#ifndef TANDEM_TRANSPORT_RPC_ENVELOPE_READER_H_
#define TANDEM_TRANSPORT_RPC_ENVELOPE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/ring.h"

namespace tandem {

// Not thread-safe. Takes memory for one ring entry and, while pieces come, for
// those that came (no more because they announce more): a small multiple of
// max_envelope_bytes at most.
class EnvelopeReader {
 public:
  struct Limits {
    // Of an envelope in pieces.
    size_t max_envelope_bytes = size_t{64} * 1024 * 1024;
    // Of FlatBuffers' verifier.
    uint32_t max_depth = 16;
    uint32_t max_tables = 1'000'000;
    // Of what its fields take once unpacked: more than the envelope itself if
    // it names the same string many times.
    uint64_t max_unpacked_bytes = uint64_t{256} * 1024 * 1024;
  };

  EnvelopeReader(RingReader ring, const Limits& limits);

  enum class [[nodiscard]] Got{
      kNothing,     // the ring is empty
      kEnvelope,    // see envelope()
      kPiece,       // of a large one; more may be there
      kDropped,     // something that is no envelope; see problem()
      kBrokenPeer,  // for good
  };

  // Takes the next entry. Doesn't wait; makes a system call only to wake a peer
  // that sleeps.
  Got Next();

  // After kEnvelope, until the next call: never a Fragment's. Verified: each
  // field may be read, and all unpacked; what it says may still be nonsense.
  const rpc::Envelope& envelope() const { return *envelope_; }

  // Its bytes, to be copied.
  std::span<const uint64_t> envelope_words() const { return envelope_words_; }

  // After kDropped: what was expected and found, and which call it was of, if
  // that could be known; else 0.
  const std::string& problem() const { return problem_; }
  uint64_t problem_correlation_id() const { return problem_correlation_id_; }

  // Entries dropped so far.
  uint64_t dropped() const { return dropped_; }

 private:
  // A verified envelope, or nullptr.
  const rpc::Envelope* Verified(std::span<const uint8_t> bytes) const;
  Got HandOut(const rpc::Envelope& found, std::span<const uint64_t> words);
  Got TakePiece(const rpc::Envelope& piece);
  Got Drop(uint64_t correlation_id, std::string problem);
  void ForgetPieces();

  RingReader ring_;
  Limits limits_;
  std::vector<uint64_t> entry_;  // of 8-byte words: FlatBuffers are aligned
  const rpc::Envelope* envelope_ = nullptr;
  std::span<const uint64_t> envelope_words_;
  std::string problem_;
  uint64_t problem_correlation_id_ = 0;
  uint64_t dropped_ = 0;

  // The envelope whose pieces come: empty, none does.
  std::vector<uint64_t> whole_;
  uint64_t whole_bytes_ = 0;
  uint64_t whole_id_ = 0;
  uint32_t pieces_ = 0;
  uint32_t next_piece_ = 0;
  uint64_t filled_bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_ENVELOPE_READER_H_

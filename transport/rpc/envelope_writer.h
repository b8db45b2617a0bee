// EnvelopeWriter: sends envelopes over an RPC ring, large ones in pieces.
//
// Data flow: an envelope, or its FlatBuffer -> Post -> queue -> Pump, while
// there is room -> ring entries: the envelope, or its Fragments -> the peer's
// EnvelopeReader.
// Ownership: one side of a session; the ring must outlive the writer.
//
//   EnvelopeWriter writer(*std::move(ring));
//   rpc::EnvelopeT call;
//   call.correlation_id = 1;
//   call.payload.Set(rpc::GetSceneInfoRequestT());
//   writer.Post(call);
//   while (writer.Pump() == ErrorCode::kRingFull) ...  // until the peer reads
//
// The writer loses nothing and never waits. A caller that may post more than
// the peer reads must check queued_bytes first. Envelopes are sent in the order
// of Post; the pieces of one envelope are consecutive.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/ring/ring.h"

namespace tandem {

// Not thread-safe.
class EnvelopeWriter {
 public:
  // `max_piecewise_bytes`: the largest envelope that is sent in pieces.
  explicit EnvelopeWriter(RingWriter ring,
                          size_t max_piecewise_bytes = kMaxEnvelopeBytes);

  // Appends an envelope to the queue, and writes as much as the ring has room
  // for. Returns Pump's result. kMessageTooLarge: the envelope is larger than
  // max_envelope_bytes(), and was not queued.
  ErrorCode Post(const rpc::EnvelopeT& envelope);

  // As above, for an envelope that is packed already; copies it.
  ErrorCode Post(std::span<const uint8_t> envelope, uint64_t correlation_id);

  // Continues to write. kOk: the queue is empty. kRingFull: the peer must read
  // first. kBrokenPeer: permanently. Never blocks; makes a system call only to
  // wake a sleeping peer.
  ErrorCode Pump();

  // The bytes of envelopes that are not completely in the ring.
  size_t queued_bytes() const { return queued_bytes_; }
  // The largest envelope that Post accepts: what fits into an entry of the
  // ring, or into pieces.
  size_t max_envelope_bytes() const;

 private:
  struct Queued {
    std::vector<uint8_t> envelope;
    uint64_t correlation_id;
    uint32_t pieces_sent = 0;
  };

  // The bytes of a piece's data; 0: the ring is too small for pieces.
  size_t PieceBytes() const;
  ErrorCode WriteNext(Queued* next);

  RingWriter ring_;
  size_t max_piecewise_bytes_;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  flatbuffers::FlatBufferBuilder packed_;
  flatbuffers::FlatBufferBuilder piece_;
};

}  // namespace tandem

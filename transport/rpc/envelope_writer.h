// EnvelopeWriter: sends envelopes over an RPC ring, large ones in pieces.
//
// Data flow: an envelope, or its FlatBuffer -> Post -> queue -> Pump, as far as
// there is room -> ring entries: the envelope itself, or Fragments of it -> the
// peer's EnvelopeReader. Ownership: one side of a session; the ring outlives
// the writer.
//
//   EnvelopeWriter writer(*std::move(ring));
//   rpc::EnvelopeT call;
//   call.correlation_id = 1;
//   call.payload.Set(rpc::GetSceneInfoRequestT());
//   writer.Post(call);
//   while (writer.Pump() == ErrorCode::kRingFull) ...  // the peer reads on
//
// Nothing is lost and nothing waits here: a caller that posts more than the
// peer reads checks queued_bytes first. Envelopes leave in the order of their
// posting; the pieces of one have no other envelope between them.

#ifndef TANDEM_TRANSPORT_RPC_ENVELOPE_WRITER_H_
#define TANDEM_TRANSPORT_RPC_ENVELOPE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/ring.h"

namespace tandem {

// Not thread-safe.
class EnvelopeWriter {
 public:
  explicit EnvelopeWriter(RingWriter ring);

  // Packs an envelope to the end of the queue, and writes what there is room
  // for. What Pump says; kMessageTooLarge: the ring is too small for pieces of
  // it, and it was not queued.
  ErrorCode Post(const rpc::EnvelopeT& envelope);

  // The same of one that was packed elsewhere: copies it.
  ErrorCode Post(std::span<const uint8_t> envelope, uint64_t correlation_id);

  // Writes on. kOk: the queue is empty. kRingFull: the peer must read first.
  // kBrokenPeer: for good. Never blocks; a system call only to wake a peer that
  // sleeps.
  ErrorCode Pump();

  // Of envelopes that are not in the ring yet, or not all of them.
  size_t queued_bytes() const { return queued_bytes_; }

 private:
  struct Queued {
    std::vector<uint8_t> envelope;
    uint64_t correlation_id;
    uint32_t pieces_sent = 0;
  };

  // Of a piece's data; 0: the ring is too small for pieces.
  size_t PieceBytes() const;
  ErrorCode WriteNext(Queued* next);

  RingWriter ring_;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  flatbuffers::FlatBufferBuilder packed_;
  flatbuffers::FlatBufferBuilder piece_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RPC_ENVELOPE_WRITER_H_

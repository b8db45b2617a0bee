#include "transport/rpc/envelope_writer.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// The overhead of a Fragment's envelope: tables, their fields, alignment.
constexpr size_t kPieceOverhead = 128;
// Small, so that the peer can read a piece while the next is written.
constexpr size_t kLargestPiece = 64 * 1024;

}  // namespace

EnvelopeWriter::EnvelopeWriter(RingWriter ring, size_t max_piecewise_bytes)
    : ring_(std::move(ring)),
      max_piecewise_bytes_(max_piecewise_bytes),
      piece_(PieceBytes() + kPieceOverhead) {}

size_t EnvelopeWriter::PieceBytes() const {
  const size_t entry = ring_.max_message_bytes();
  return entry > kPieceOverhead
             ? std::min(kLargestPiece, entry - kPieceOverhead)
             : 0;
}

size_t EnvelopeWriter::max_envelope_bytes() const {
  const size_t entry = ring_.max_message_bytes();
  return PieceBytes() == 0 ? entry : std::max(entry, max_piecewise_bytes_);
}

ErrorCode EnvelopeWriter::Post(const rpc::EnvelopeT& envelope) {
  packed_.Clear();
  rpc::FinishEnvelopeBuffer(packed_, rpc::CreateEnvelope(packed_, &envelope));
  return Post(std::span(packed_.GetBufferPointer(), packed_.GetSize()),
              envelope.correlation_id);
}

ErrorCode EnvelopeWriter::Post(std::span<const uint8_t> envelope,
                               uint64_t correlation_id) {
  if (queue_.empty() && envelope.size() <= ring_.max_message_bytes()) {
    const ErrorCode code = ring_.TryWrite(std::as_bytes(envelope));
    if (code != ErrorCode::kRingFull) return code;
  }
  if (envelope.size() > max_envelope_bytes()) {
    return ErrorCode::kMessageTooLarge;
  }
  queue_.push_back({.envelope = {envelope.begin(), envelope.end()},
                    .correlation_id = correlation_id});
  queued_bytes_ += envelope.size();
  return Pump();
}

ErrorCode EnvelopeWriter::Pump() {
  while (!queue_.empty()) {
    const ErrorCode code = WriteNext(&queue_.front());
    if (code == ErrorCode::kRingFull || code == ErrorCode::kBrokenPeer) {
      return code;
    }
  }
  return ErrorCode::kOk;
}

// Writes an entry of the queue's first envelope; the last entry removes it.
ErrorCode EnvelopeWriter::WriteNext(Queued* next) {
  const std::span<const uint8_t> whole = next->envelope;
  if (whole.size() <= ring_.max_message_bytes()) {
    const ErrorCode code = ring_.TryWrite(std::as_bytes(whole));
    if (code != ErrorCode::kOk) return code;
  } else {
    const size_t piece_bytes = PieceBytes();
    const uint32_t pieces =
        static_cast<uint32_t>((whole.size() - 1) / piece_bytes + 1);
    const size_t begin = next->pieces_sent * piece_bytes;
    const std::span<const uint8_t> data =
        whole.subspan(begin, std::min(piece_bytes, whole.size() - begin));
    piece_.Clear();
    const auto fragment =
        rpc::CreateFragment(piece_, next->pieces_sent, pieces, whole.size(),
                            piece_.CreateVector(data.data(), data.size()));
    rpc::EnvelopeBuilder envelope(piece_);
    envelope.add_correlation_id(next->correlation_id);
    envelope.add_payload_type(rpc::Payload::Fragment);
    envelope.add_payload(fragment.Union());
    rpc::FinishEnvelopeBuffer(piece_, envelope.Finish());
    const ErrorCode code = ring_.TryWrite(
        std::as_bytes(std::span(piece_.GetBufferPointer(), piece_.GetSize())));
    if (code != ErrorCode::kOk) return code;
    if (++next->pieces_sent < pieces) return ErrorCode::kOk;
  }
  queued_bytes_ -= whole.size();
  queue_.pop_front();
  return ErrorCode::kOk;
}

}  // namespace tandem

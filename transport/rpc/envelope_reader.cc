#include "transport/rpc/envelope_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "flatbuffers/flatbuffers.h"
#include "transport/rpc/unpacked_size.h"

namespace tandem {
namespace {

constexpr size_t WordsFor(size_t bytes) { return bytes / sizeof(uint64_t) + 1; }

}  // namespace

EnvelopeReader::EnvelopeReader(RingReader ring, const Limits& limits)
    : ring_(std::move(ring)),
      limits_(limits),
      entry_(WordsFor(ring_.max_message_bytes())) {}

EnvelopeReader::Got EnvelopeReader::Next() {
  envelope_ = nullptr;
  if (pieces_ != 0 && next_piece_ == pieces_) ForgetPieces();  // returned
  size_t bytes = 0;
  switch (ring_.TryRead(std::as_writable_bytes(std::span(entry_)), &bytes)) {
    case ErrorCode::kOk:
      break;
    case ErrorCode::kRingEmpty:
      return Got::kNothing;
    default:
      return Got::kBrokenPeer;
  }
  const rpc::Envelope* const found =
      Verified({reinterpret_cast<const uint8_t*>(entry_.data()), bytes});
  if (found == nullptr) {
    return Drop(0, absl::StrCat("expected an Envelope (FlatBuffers, 'HRPC'), "
                                "found ",
                                bytes, " other bytes"));
  }
  if (found->payload_type() == rpc::Payload::Fragment) return TakePiece(*found);
  if (pieces_ != 0) {  // it can no longer be completed
    ForgetPieces();
    ++dropped_;
  }
  return HandOut(*found, std::span(entry_).first(WordsFor(bytes)));
}

EnvelopeReader::Got EnvelopeReader::HandOut(const rpc::Envelope& found,
                                            std::span<const uint64_t> words) {
  if (!UnpacksWithin(found, limits_.max_unpacked_bytes)) {
    return Drop(found.correlation_id(),
                absl::StrCat("expected an envelope of at most ",
                             limits_.max_unpacked_bytes,
                             " bytes once unpacked, found more"),
                ErrorCode::kMessageTooLarge);
  }
  envelope_ = &found;
  envelope_words_ = words;
  return Got::kEnvelope;
}

const rpc::Envelope* EnvelopeReader::Verified(
    std::span<const uint8_t> bytes) const {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), limits_.max_depth,
                                 limits_.max_tables);
  return rpc::VerifyEnvelopeBuffer(verifier) ? rpc::GetEnvelope(bytes.data())
                                             : nullptr;
}

EnvelopeReader::Got EnvelopeReader::TakePiece(const rpc::Envelope& piece) {
  const uint64_t id = piece.correlation_id();
  const rpc::Fragment* const fragment = piece.payload_as_Fragment();
  if (fragment == nullptr || fragment->data() == nullptr) {
    return Drop(id, "expected a Fragment with data, found none");
  }
  const size_t bytes = fragment->data()->size();
  if (fragment->index() == 0) {
    ForgetPieces();  // an earlier, incomplete envelope
    if (fragment->total_bytes() > limits_.max_envelope_bytes ||
        fragment->total_bytes() == 0 || fragment->count() == 0 ||
        bytes > fragment->total_bytes()) {
      return Drop(
          id,
          absl::StrCat("expected an envelope of 1 to ",
                       limits_.max_envelope_bytes, " bytes in pieces, found ",
                       fragment->total_bytes(), " in ", fragment->count()),
          fragment->total_bytes() > limits_.max_envelope_bytes
              ? ErrorCode::kMessageTooLarge
              : ErrorCode::kInvalidArgument);
    }
    whole_bytes_ = fragment->total_bytes();
    whole_id_ = id;
    pieces_ = fragment->count();
  } else if (fragment->index() != next_piece_ || id != whole_id_ ||
             fragment->count() != pieces_ ||
             fragment->total_bytes() != whole_bytes_ ||
             bytes > whole_bytes_ - filled_bytes_) {
    const std::string expected =
        pieces_ == 0 ? "piece 0"
                     : absl::StrCat("piece ", next_piece_, " of ", pieces_);
    const std::string found =
        absl::StrCat("piece ", fragment->index(), " of ", fragment->count(),
                     ", ", bytes, " bytes");
    ForgetPieces();
    return Drop(id, absl::StrCat("expected ", expected, ", found ", found));
  }
  whole_.resize(WordsFor(filled_bytes_ + bytes));
  std::memcpy(reinterpret_cast<uint8_t*>(whole_.data()) + filled_bytes_,
              fragment->data()->data(), bytes);
  filled_bytes_ += bytes;
  if (++next_piece_ < pieces_) return Got::kPiece;

  const rpc::Envelope* const found =
      filled_bytes_ == whole_bytes_
          ? Verified({reinterpret_cast<const uint8_t*>(whole_.data()),
                      static_cast<size_t>(whole_bytes_)})
          : nullptr;
  if (found == nullptr || found->payload_type() == rpc::Payload::Fragment) {
    ForgetPieces();
    return Drop(id, absl::StrCat("expected an Envelope in ", fragment->count(),
                                 " pieces, found other bytes"));
  }
  return HandOut(*found, whole_);
}

EnvelopeReader::Got EnvelopeReader::Drop(uint64_t correlation_id,
                                         std::string problem, ErrorCode code) {
  problem_ = std::move(problem);
  problem_correlation_id_ = correlation_id;
  problem_code_ = code;
  ++dropped_;
  return Got::kDropped;
}

void EnvelopeReader::ForgetPieces() {
  whole_.clear();
  whole_.shrink_to_fit();
  whole_bytes_ = whole_id_ = filled_bytes_ = 0;
  pieces_ = next_piece_ = 0;
}

}  // namespace tandem

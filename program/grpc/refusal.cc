#include "program/grpc/refusal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem {
namespace {

// RFC 9113.
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kPingBytes = 8;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                  absl::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) {
    frame.push_back(static_cast<char>(payload.size() >> shift));
  }
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) {
    frame.push_back(static_cast<char>(stream >> shift));
  }
  absl::StrAppend(&frame, payload);
  return frame;
}

// RFC 7541: a text is its length, with a prefix of 7 bits, and its bytes.
std::string Literal(absl::string_view text) {
  constexpr size_t kPrefix = 127;
  std::string literal;
  if (text.size() < kPrefix) {
    literal.push_back(static_cast<char>(text.size()));
  } else {
    literal.push_back(static_cast<char>(kPrefix));
    size_t rest = text.size() - kPrefix;
    for (; rest >= 128; rest >>= 7) {
      literal.push_back(static_cast<char>(rest % 128 + 128));
    }
    literal.push_back(static_cast<char>(rest));
  }
  absl::StrAppend(&literal, text);
  return literal;
}

std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1), Literal(name),
                      Literal(value));
}

std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isprint(static_cast<unsigned char>(c)) && c != '%') {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

// Returns the answer to a refused call: gRPC's "Trailers-Only".
std::string CallEnd(absl::string_view text) {
  // An empty dynamic table, and status 200 of the static table.
  return absl::StrCat("\x20\x88", Field("content-type", "application/grpc"),
                      Field("grpc-status", "7"),
                      Field("grpc-message", PercentEncoded(text)));
}

uint32_t Number(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes)
    number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

}  // namespace

Refusal::Refusal(absl::string_view text)
    : call_end_(CallEnd(text)), preface_(kPreface) {}

std::optional<std::string> Refusal::Answer(absl::string_view received) {
  received_bytes_ += received.size();
  if (received_bytes_ > kMostBytes) return std::nullopt;
  const size_t expected = std::min(received.size(), preface_.size());
  if (received.substr(0, expected) != preface_.substr(0, expected)) {
    return std::nullopt;
  }
  preface_.remove_prefix(expected);
  received.remove_prefix(expected);
  std::string answer;
  if (!greeted_ && preface_.empty()) {
    greeted_ = true;
    answer = Frame(kSettings, 0, 0, "");
  }
  while (!received.empty()) {
    if (payload_bytes_left_ > 0) {
      const size_t skipped = std::min(payload_bytes_left_, received.size());
      payload_bytes_left_ -= skipped;
      received.remove_prefix(skipped);
      continue;
    }
    frame_.push_back(received.front());
    received.remove_prefix(1);
    if (frame_.size() < kFrameHeaderBytes) continue;
    const size_t payload_bytes = Number(absl::string_view(frame_).substr(0, 3));
    const bool is_ping = frame_[3] == kPing && payload_bytes == kPingBytes;
    if (is_ping && frame_.size() < kFrameHeaderBytes + kPingBytes) continue;
    payload_bytes_left_ = is_ping ? 0 : payload_bytes;
    AnswerFrame(&answer);
    frame_.clear();
  }
  return answer;
}

void Refusal::AnswerFrame(std::string* answer) {
  const absl::string_view frame = frame_;
  const auto type = static_cast<uint8_t>(frame[3]);
  const bool is_ack = (frame[4] & kAck) != 0;
  const uint32_t stream = Number(frame.substr(5, 4)) & 0x7fffffff;
  if (type == kSettings && !is_ack) {
    *answer += Frame(kSettings, kAck, 0, "");
  } else if (type == kPing && !is_ack &&
             frame.size() == kFrameHeaderBytes + kPingBytes) {
    *answer += Frame(kPing, kAck, 0, frame.substr(kFrameHeaderBytes));
  } else if (type == kHeaders && stream > last_call_) {
    last_call_ = stream;
    *answer += Frame(kHeaders, kEndStream | kEndHeaders, stream, call_end_);
  }
}

}  // namespace tandem

// Refusal: the HTTP/2 bytes that end each call of a connection with
// PERMISSION_DENIED and a text for the client.
//
// Data flow: the client's bytes -> frame headers, of which calls, settings and
// pings matter -> frames to send. Payloads are skipped, never stored.
// Ownership: one thread, one object for each refused connection.
//
//   Refusal refusal("expected a client of uid 0, found one of uid 1001");
//   const std::optional<std::string> answer = refusal.Answer(received);
//   if (!answer.has_value()) ...   // not HTTP/2, or too many bytes: close

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

class Refusal {
 public:
  // The number of bytes after which a client is disconnected.
  static constexpr size_t kMostBytes = 1 << 20;

  explicit Refusal(absl::string_view text);

  // Returns the bytes to send after `received`, which may begin and end inside
  // a frame; empty: nothing yet; nullopt: disconnect. Allocates.
  std::optional<std::string> Answer(absl::string_view received);

 private:
  void AnswerFrame(std::string* answer);

  const std::string call_end_;     // HEADERS payload, equal for each call
  absl::string_view preface_;      // its bytes that have not arrived
  std::string frame_;              // header and kept bytes of the current frame
  size_t payload_bytes_left_ = 0;  // still to skip
  size_t received_bytes_ = 0;
  uint32_t last_call_ = 0;
  bool greeted_ = false;
};

}  // namespace tandem

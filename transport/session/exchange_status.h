// The status of an exchange, in the header.
//
// Data flow: the process that ends an exchange -> exchange_status, error_text
// -> the client's recv.
//
//   StoreStatus(header, ErrorCode::kOk, "");
//   header->frame_seq.store(...);  // publishes it

#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"

namespace tandem {

// Stores the code and, for an error, the first 239 bytes of `text`. The next
// frame_seq or attach_ack publishes them.
inline void StoreStatus(LrbcHeader* header, ErrorCode code,
                        absl::string_view text) {
  if (code != ErrorCode::kOk) {
    std::memset(header->error_text, 0, sizeof(header->error_text));
    text.copy(header->error_text, sizeof(header->error_text) - 1);
  }
  // Compared with the word itself: the peer may have overwritten it.
  // relaxed: frame_seq or attach_ack publishes it.
  StoreIfOther(&header->exchange_status, static_cast<uint32_t>(code));
}

}  // namespace tandem

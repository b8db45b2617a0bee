// The error of a worker in its slot: the failed environment, and the end of the
// text of its exception.
//
// Data flow: a worker's traceback -> the slot -> the exchange's error text, and
// the client's.
// Ownership: only the slot's worker stores, in an exchange or lane. The
// publisher and the client read copies afterwards.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "schema/layout/worker_slot.h"

namespace tandem {

// Stores the last bytes of `text`, whole characters of UTF-8. `done` or
// `lane_done` publishes them.
inline void StoreWorkerError(uint32_t env, absl::string_view text,
                             WorkerSlot* slot) {
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.size() > sizeof(slot->error_text)) {
    text.remove_prefix(text.size() - sizeof(slot->error_text));
    // Bytes 10xxxxxx continue a character.
    while (!text.empty() && (static_cast<uint8_t>(text[0]) & 0xC0) == 0x80) {
      text.remove_prefix(1);
    }
  }
  text.copy(slot->error_text, text.size());
  // relaxed: done or lane_done publishes both.
  slot->error_env.store(env, std::memory_order_relaxed);
  slot->error_bytes.store(static_cast<uint32_t>(text.size()),
                          std::memory_order_relaxed);
}

struct WorkerError {
  uint32_t env = 0;
  std::string text = {};       // any bytes
  std::string last_line = {};  // the exception, such as "ValueError: ..."
};

// Copies the error of a slot, with any content.
inline WorkerError WorkerErrorOf(const WorkerSlot& slot) {
  // relaxed: done or lane_done published both.
  const uint32_t bytes = slot.error_bytes.load(std::memory_order_relaxed);
  WorkerError error = {.env = slot.error_env.load(std::memory_order_relaxed)};
  error.text.assign(slot.error_text,
                    std::min<size_t>(bytes, sizeof(slot.error_text)));
  const size_t line = error.text.rfind('\n');
  error.last_line =
      line == std::string::npos ? error.text : error.text.substr(line + 1);
  return error;
}

}  // namespace tandem

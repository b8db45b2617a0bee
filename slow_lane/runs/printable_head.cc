#include "slow_lane/runs/printable_head.h"

#include <cstdint>

#include "slow_lane/runs/utf8.h"

namespace tandem::slow_lane {
namespace {

uint8_t ByteAt(absl::string_view text, size_t index) {
  return static_cast<uint8_t>(text[index]);
}

// Bytes of the character that `text` begins with; 0 if it is none to print.
size_t PrintableBytes(absl::string_view text) {
  const size_t bytes = Utf8CharacterBytes(text);
  const uint8_t last = bytes == 0 ? 0 : ByteAt(text, bytes - 1);
  const bool is_control =
      (bytes == 1 && (last < 0x20 || last == 0x7F)) ||
      (bytes == 2 && ByteAt(text, 0) == 0xC2 && last < 0xA0);  // C1
  return is_control ? 0 : bytes;
}

}  // namespace

std::string PrintableHead(absl::string_view text, size_t max_bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = PrintableBytes(text);
    const size_t printed = bytes == 0 ? 4 : bytes;
    if (printable.size() + printed > max_bytes) break;
    if (bytes == 0) {
      const uint8_t byte = ByteAt(text, 0);
      printable.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
      text.remove_prefix(1);
    } else {
      printable.append(text.data(), bytes);
      text.remove_prefix(bytes);
    }
  }
  return printable;
}

}  // namespace tandem::slow_lane

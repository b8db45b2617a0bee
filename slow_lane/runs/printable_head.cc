#include "slow_lane/runs/printable_head.h"

#include <cstdint>

namespace tandem::slow_lane {
namespace {

uint8_t ByteAt(absl::string_view text, size_t index) {
  return static_cast<uint8_t>(text[index]);
}

// Bytes of the character that `text` begins with; 0 if it is none to print.
size_t CharacterBytes(absl::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) return first < 0x20 || first == 0x7F ? 0 : 1;
  size_t bytes = 0;
  uint32_t value = 0;
  if (first >> 5 == 0b110) {
    bytes = 2;
    value = first & 0x1Fu;
  } else if (first >> 4 == 0b1110) {
    bytes = 3;
    value = first & 0x0Fu;
  } else if (first >> 3 == 0b11110) {
    bytes = 4;
    value = first & 0x07u;
  }
  if (bytes == 0 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (ByteAt(text, i) >> 6 != 0b10) return 0;
    value = value << 6 | (ByteAt(text, i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0xA0, 0x800, 0x10000};  // C1 controls go too
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[bytes - 2] || value > 0x10FFFF || surrogate) return 0;
  return bytes;
}

}  // namespace

std::string PrintableHead(absl::string_view text, size_t max_bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
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

#include "transport/base/utf8.h"

#include <cstdint>

namespace tandem {

size_t Utf8CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 0b10) return 0;
  }
  // Spelled longer than need be, a surrogate, or beyond U+10FFFF.
  const uint8_t second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return bytes;
}

size_t Utf8PrefixBytes(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = Utf8CharacterBytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

}  // namespace tandem

#include "transport/base/printable.h"

#include <cstdint>
#include <limits>

#include "transport/base/utf8.h"

namespace tandem {
namespace {

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

uint8_t ByteAt(absl::string_view text, size_t index) {
  return static_cast<uint8_t>(text[index]);
}

// The number of a character of UTF-8 of that many bytes.
uint32_t CodePoint(absl::string_view text, size_t bytes) {
  if (bytes == 1) return ByteAt(text, 0);
  uint32_t point = ByteAt(text, 0) & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    point = point << 6 | (ByteAt(text, i) & 0x3F);
  }
  return point;
}

bool SteersATerminal(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x061C ||
         point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

std::string Escaped(absl::string_view text, size_t max_bytes,
                    bool keeps_lines) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = Utf8CharacterBytes(text);
    const bool is_line = keeps_lines && (text[0] == '\n' || text[0] == '\t');
    if (bytes > 0 && (is_line || !SteersATerminal(CodePoint(text, bytes)))) {
      if (printable.size() + bytes > max_bytes) break;
      printable.append(text.data(), bytes);
      text.remove_prefix(bytes);
      continue;
    }
    const size_t escaped = bytes == 0 ? 1 : bytes;
    if (printable.size() + 4 * escaped > max_bytes) break;
    for (size_t i = 0; i < escaped; ++i) {
      const uint8_t byte = ByteAt(text, i);
      printable.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
    }
    text.remove_prefix(escaped);
  }
  return printable;
}

}  // namespace

std::string Printable(absl::string_view text) {
  return Escaped(text, kUnbounded, /*keeps_lines=*/false);
}

std::string PrintableLines(absl::string_view text) {
  return Escaped(text, kUnbounded, /*keeps_lines=*/true);
}

std::string PrintableHead(absl::string_view text, size_t max_bytes) {
  return Escaped(text, max_bytes, /*keeps_lines=*/false);
}

}  // namespace tandem

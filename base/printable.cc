#include "base/printable.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "utf8cpp/utf8.h"

namespace tandem {
namespace {

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

bool SteersATerminal(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x061C ||
         point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

std::string Escaped(absl::string_view text, size_t max_bytes,
                    bool keeps_lines) {
  std::string printable;
  // Each input byte takes at least one output byte. If the cut is inside a
  // character, up to three of its bytes remain. They do not fit: escaped, each
  // takes four bytes.
  text = text.substr(0, max_bytes);
  // Characters up to `valid`, then a byte that is not part of a character.
  const char* valid = utf8::find_invalid(text.begin(), text.end());
  for (const char* at = text.begin(); at != text.end();) {
    const char* next = at + 1;
    bool stays = false;
    if (at < valid) {
      next = at;
      const uint32_t point = utf8::unchecked::next(next);
      stays = (keeps_lines && (*at == '\n' || *at == '\t')) ||
              !SteersATerminal(point);
    } else {
      valid = utf8::find_invalid(next, text.end());
    }
    const absl::string_view bytes(at, static_cast<size_t>(next - at));
    const size_t most = max_bytes - printable.size();
    if ((stays ? bytes.size() : 4 * bytes.size()) > most) break;
    if (stays) {
      printable.append(bytes.data(), bytes.size());
    } else {
      for (const char c : bytes) {
        absl::StrAppend(&printable, "\\x", absl::Hex(c, absl::kZeroPad2));
      }
    }
    at = next;
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

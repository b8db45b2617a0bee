// Where the characters of UTF-8 are in bytes that another program wrote.
//
//   if (Utf8PrefixBytes(text) < text.size()) ...  // no UTF-8 from there on

#ifndef TANDEM_TRANSPORT_BASE_UTF8_H_
#define TANDEM_TRANSPORT_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace tandem {

// Bytes of the character that `text`, which is not empty, begins with; 0: with
// none. Not one are those spelled longer than need be, and surrogates.
size_t Utf8CharacterBytes(absl::string_view text);

// Bytes of the characters that `text` begins with; its size: it is UTF-8.
size_t Utf8PrefixBytes(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_UTF8_H_

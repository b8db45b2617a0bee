// Mismatch: the sentence of a failed check of a region's bytes.
//
//   Mismatch("version", "1", "2");  // "expected version 1, found 2"

#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {

// `member` is what was checked. Allocates.
inline std::string Mismatch(absl::string_view member,
                            absl::string_view expected,
                            absl::string_view found) {
  return absl::StrCat("expected ", member, " ", expected, ", found ", found);
}

}  // namespace tandem

// ShowEachSecond: a text that changes, on a terminal or in a pipe.
//
// Data flow: text -> Screen.
// Ownership: a program's main thread, which it blocks; the signals are its own.

#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace tandem {

// Shows text(replaces) each second, until a stop signal: OK. `replaces`: the
// text stands in the place of the last one. Errors: Print's.
absl::Status ShowEachSecond(
    const std::function<std::string(bool replaces)>& text);

}  // namespace tandem

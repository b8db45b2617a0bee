// FailureLine: the line of a failed run that says why it failed.
//
//   FailureLine("the worker exited with code 1; the last it wrote to stderr:\n"
//               "    solve(x)\nRuntimeError: solver diverged\nin environment
//               2");
//   // "RuntimeError: solver diverged"

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Returns the last line of a failure reason that an uncaught exception has
// printed: of Python, its class and text after a traceback, not the notes that
// follow; of C++, its what(). Empty if there is none.
std::string FailureLine(absl::string_view failure_reason);

}  // namespace tandem::slow_lane

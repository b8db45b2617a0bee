// Print: writes text to standard output at once. Screen: shows texts on a
// terminal, where each replaces the last. Without a terminal with escape
// sequences, it prints one text after another.
//
// Data flow: texts -> ClippedLines -> standard output.
// Ownership: one command; destruction restores the terminal. The caller handles
// signals, and calls Leave before the process ends in another way.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Writes buffered text first. Blocks while a pipe is full.
// ErrorCode::kPeerGone: a pipe without a reader, if the caller ignores SIGPIPE.
// Other errors: those of write(2), such as a full disk.
absl::Status Print(absl::string_view text);

// Returns at most `rows` lines of a UTF-8 text, each at most `columns`
// characters. A longer line ends with "...". The last line has the number of
// omitted lines.
std::vector<std::string> ClippedLines(absl::string_view text, size_t rows,
                                      size_t columns);

class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { Leave(); }

  // False: texts are printed completely, one after another.
  bool replaces() const { return replaces_; }
  // As Print; clips the text to the window.
  absl::Status Show(const std::string& text);
  // Restores the terminal. A second call has no effect.
  void Leave();

 private:
  const bool replaces_;
  bool entered_ = false;
};

}  // namespace tandem

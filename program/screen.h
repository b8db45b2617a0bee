// Print: text for standard output, at once. Screen: a terminal on which each
// text replaces the last; if standard output is no terminal, or one without
// escape sequences, one text after another.
//
// Data flow: texts -> ClippedLines -> standard output.
// Ownership: one command; destruction restores the terminal. The caller handles
// signals, and calls Leave before the process ends in another way.
//
//   Screen screen;
//   screen.Show(text);
//   screen.Leave();  // before a stop by Ctrl-Z; the next Show comes back

#ifndef TANDEM_PROGRAM_SCREEN_H_
#define TANDEM_PROGRAM_SCREEN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Flushes stdio first. ErrorCode::kPeerGone: a pipe without a reader, and the
// caller ignores SIGPIPE; else the error of write(2), such as a full disk.
// Blocks while a pipe is full.
absl::Status Print(absl::string_view text);

// At most `rows` lines of a text in UTF-8, each at most `columns` characters; a
// longer line ends with "...". The last line has the number of lines left out.
std::vector<std::string> ClippedLines(absl::string_view text, size_t rows,
                                      size_t columns);

class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { Leave(); }

  // False: texts come one after another, complete.
  bool replaces() const { return replaces_; }
  // As Print; clips the text to the window.
  absl::Status Show(const std::string& text);
  // Safe twice.
  void Leave();

 private:
  const bool replaces_;
  bool entered_ = false;
};

}  // namespace tandem

#endif  // TANDEM_PROGRAM_SCREEN_H_

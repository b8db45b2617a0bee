// Screen: a terminal on which each text replaces the last, or, where standard
// output is none, or one that takes no escape sequences, texts one after
// another.
//
// Data flow: texts -> ClippedLines -> standard output.
// Ownership: one command; destruction leaves the terminal as it was. Signals
// are the caller's: whoever ends the process otherwise leaves the screen first.
//
//   Screen screen;
//   screen.Show(text);
//   screen.Leave();  // before a stop by Ctrl-Z; the next Show comes back

#ifndef TANDEM_PROGRAM_SCREEN_H_
#define TANDEM_PROGRAM_SCREEN_H_

#include <string>

#include "absl/status/status.h"

namespace tandem {

// Behind a line, clears what was there before to the window's right edge.
inline constexpr char kClearRestOfLine[] = "\x1b[K";

// Whether that is a terminal, and TERM says which: neither nothing nor "dumb".
bool TakesEscapes(int descriptor);

class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { Leave(); }

  // False: texts come one after another, whole.
  bool replaces() const { return replaces_; }
  // As Print; of a text that is larger than the window what fits.
  absl::Status Show(const std::string& text);
  // Safe twice.
  void Leave();

 private:
  const bool replaces_;
  bool entered_ = false;
};

}  // namespace tandem

#endif  // TANDEM_PROGRAM_SCREEN_H_

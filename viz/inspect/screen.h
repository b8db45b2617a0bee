// Screen: a terminal on which each text replaces the last, or, where there is
// no terminal, texts one after another.
//
// Data flow: texts -> standard output, clipped to the window.
// Ownership: main; destruction leaves the terminal as it was. Signals are the
// caller's: whoever ends the process otherwise leaves the screen first.
//
//   Screen screen;
//   screen.Show(text);
//   screen.Leave();  // before a stop by Ctrl-Z; the next Show comes back

#ifndef TANDEM_VIZ_INSPECT_SCREEN_H_
#define TANDEM_VIZ_INSPECT_SCREEN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// The first `rows` lines, each cut to `columns`, and a line that says what was
// cut off, for a terminal that shows them from its top left corner.
std::string ClippedTo(absl::string_view text, size_t rows, size_t columns);

class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { Leave(); }

  bool is_terminal() const { return is_terminal_; }
  // False: nobody reads it any more.
  bool Show(const std::string& text);
  // Safe twice.
  void Leave();

 private:
  bool is_terminal_;
  bool entered_ = false;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_SCREEN_H_

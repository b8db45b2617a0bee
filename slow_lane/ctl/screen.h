// Screen: a terminal on which each text replaces the last, or, where standard
// output is none, texts one after another.
//
// Data flow: texts -> standard output, cut to the window.
// Ownership: one command; destruction leaves the terminal as it was. Signals
// are the caller's: whoever ends the process otherwise leaves the screen first.
//
//   Screen screen;
//   screen.Show(text);
//   screen.Leave();  // before a stop by Ctrl-Z; the next Show comes back

#ifndef TANDEM_SLOW_LANE_CTL_SCREEN_H_
#define TANDEM_SLOW_LANE_CTL_SCREEN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// The first `rows` lines, each cut to `columns` characters, for a terminal that
// shows them from its top left corner; the last of them says how many did not
// fit.
std::string CutTo(absl::string_view text, size_t rows, size_t columns);

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
  const bool is_terminal_;
  bool entered_ = false;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_SCREEN_H_

#include "viz/inspect/each_second.h"

#include <signal.h>
#include <time.h>

#include "program/screen.h"

namespace tandem {

absl::Status ShowEachSecond(
    const std::function<std::string(bool replaces)>& text) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Screen screen;
  for (;;) {
    absl::Status shown = screen.Show(text(screen.replaces()));
    if (!shown.ok()) return shown;
    constexpr timespec kSecond = {.tv_sec = 1, .tv_nsec = 0};
    switch (sigtimedwait(&signals, nullptr, &kSecond)) {
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
        return absl::OkStatus();
      case SIGTSTP:
        screen.Leave();
        raise(SIGSTOP);
        break;
      default:  // a second has passed, or the window's size has changed
        break;
    }
  }
}

}  // namespace tandem

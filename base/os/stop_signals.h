// StopSignals: the signals that end a program in order.
//
// Data flow: a user, a terminal or a service manager -> the kernel -> the
// program, which blocks or handles them.
//
//   for (const int signal : StopSignals()) sigaddset(&signals, signal);

#ifndef TANDEM_BASE_OS_STOP_SIGNALS_H_
#define TANDEM_BASE_OS_STOP_SIGNALS_H_

#include <signal.h>

#include <vector>

namespace tandem {

// Returns SIGINT, SIGTERM and SIGHUP; without SIGHUP if this process ignores
// it, as after nohup: the end of the terminal then ends no program.
inline std::vector<int> StopSignals() {
  std::vector<int> signals = {SIGINT, SIGTERM};
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

}  // namespace tandem

#endif  // TANDEM_BASE_OS_STOP_SIGNALS_H_

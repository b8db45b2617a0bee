#include "base/os/stop_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_format.h"

namespace tandem {

std::vector<int> StopSignals() {
  std::vector<int> signals = {SIGINT, SIGTERM};
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

void PrepareServer() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);

  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : StopSignals()) sigaddset(&signals, number);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);

  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void HandleStopSignals(void (*handler)(int signal)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  for (const int number : StopSignals()) sigaction(number, &action, nullptr);
}

void EndBySignal(int number) {
  signal(number, SIG_DFL);
  raise(number);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, number);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  // The kernel keeps process 1 of a container from it.
  _exit(128 + number);
}

bool HideFromChildren(int handle) {
  return fcntl(handle, F_SETFD, FD_CLOEXEC) == 0;
}

std::string TimeOfDay() {
  timespec now;
  tm local;
  std::array<char, 16> clock = {};
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &local);
  strftime(clock.data(), clock.size(), "%H:%M:%S", &local);
  return absl::StrFormat("%s.%03d", clock.data(), now.tv_nsec / 1'000'000);
}

void WriteToStandardError(absl::string_view text) {
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace tandem

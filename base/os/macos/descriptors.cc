#include "base/os/posix/descriptors.h"

#include <crt_externs.h>
#include <fcntl.h>
#include <sys/event.h>
#include <sys/types.h>
#include <unistd.h>

namespace tandem {
namespace {

void ChangeEvent(int event, uint16_t flags, uint32_t filter_flags) {
  struct kevent change;
  EV_SET(&change, 0, EVFILT_USER, flags, filter_flags, 0, nullptr);
  (void)kevent(event, &change, 1, nullptr, 0, nullptr);
}

}  // namespace

// macOS has no pipe2: a program that another thread starts between the calls
// inherits the ends.
bool OpenPipe(std::array<int, 2>* ends) {
  if (pipe(ends->data()) != 0) return false;
  for (const int end : *ends) (void)fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

// Children inherit no kqueue.
int OpenEvent() {
  const int event = kqueue();
  if (event >= 0) ChangeEvent(event, EV_ADD, 0);
  return event;
}

void SetEvent(int event) { ChangeEvent(event, 0, NOTE_TRIGGER); }

// A shared library cannot name `environ`.
char** Environment() { return *_NSGetEnviron(); }

}  // namespace tandem

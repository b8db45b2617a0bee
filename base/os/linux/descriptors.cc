#include "base/os/posix/descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace tandem {

bool OpenPipe(std::array<int, 2>* ends) {
  return pipe2(ends->data(), O_CLOEXEC) == 0;
}

int OpenEvent() { return eventfd(0, EFD_CLOEXEC); }

void SetEvent(int event) { eventfd_write(event, 1); }

char** Environment() { return environ; }

}  // namespace tandem

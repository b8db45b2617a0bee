#include "base/tick_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace tandem {
namespace {

bool KernelTellsTimeByTicks() {
#if defined(__x86_64__)
  const int fd =
      open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
           O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char name[16];
  const ssize_t length = read(fd, name, sizeof(name));
  close(fd);
  return length > 0 &&
         std::string_view(name, static_cast<size_t>(length)) == "tsc\n";
#else
  return false;
#endif
}

}  // namespace

bool MachineTime::TicksTellTime() {
  static const bool tells = KernelTellsTimeByTicks();
  return tells;
}

}  // namespace tandem

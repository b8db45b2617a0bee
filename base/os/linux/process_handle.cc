#include "base/os/process_handle.h"

#include <poll.h>
#include <time.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tandem {

std::string ProgramPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

InputWait WaitForInput(int handle, int64_t wait_ns) {
  const timespec wait = {.tv_sec = wait_ns / 1'000'000'000,
                         .tv_nsec = wait_ns % 1'000'000'000};
  pollfd input = {.fd = handle, .events = POLLIN, .revents = 0};
  const int found = ppoll(&input, 1, &wait, nullptr);
  if (found < 0 && errno == EINTR) return InputWait::kSignal;
  const bool readable = found > 0 && (input.revents & (POLLIN | POLLHUP)) != 0;
  return readable ? InputWait::kReadable : InputWait::kTimedOut;
}

}  // namespace tandem

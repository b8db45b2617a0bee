#include "base/os/process_handle.h"

#include <mach-o/dyld.h>
#include <sys/event.h>
#include <sys/types.h>
#include <time.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tandem {

std::string ProgramPath() {
  uint32_t bytes = 0;
  (void)_NSGetExecutablePath(nullptr, &bytes);  // tells the size
  std::string path(bytes, '\0');
  if (_NSGetExecutablePath(path.data(), &bytes) != 0) return "";
  std::error_code error;
  return std::filesystem::canonical(path.c_str(), error).string();
}

InputWait WaitForInput(int handle, int64_t wait_ns) {
  const timespec wait = {.tv_sec = wait_ns / 1'000'000'000,
                         .tv_nsec = wait_ns % 1'000'000'000};
  struct kevent input;
  EV_SET(&input, handle, EVFILT_READ, EV_ADD, 0, 0, nullptr);
  struct kevent found;
  const UniqueFd queue(kqueue());
  const int count =
      kevent(queue.get(), &input, handle < 0 ? 0 : 1, &found, 1, &wait);
  if (count < 0 && errno == EINTR) return InputWait::kSignal;
  return count > 0 && (found.flags & EV_ERROR) == 0 ? InputWait::kReadable
                                                    : InputWait::kTimedOut;
}

}  // namespace tandem

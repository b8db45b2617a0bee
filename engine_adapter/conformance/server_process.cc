#include "engine_adapter/conformance/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/os/end_with_parent.h"

namespace tandem {

ServerProcess::ServerProcess(std::vector<std::string> command, int inherited_fd)
    : stderr_(memfd_create("stderr", MFD_CLOEXEC)) {
  if (!stderr_.valid()) std::abort();
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ > 0) return;
  // From here to exec only what is async-signal-safe.
  alarm(0);
  EndWithParent(SIGKILL, parent);
  dup2(stderr_.get(), STDERR_FILENO);
  if (inherited_fd >= 0) fcntl(inherited_fd, F_SETFD, 0);
  execv(argv[0], argv.data());
  _exit(127);
}

ServerProcess::~ServerProcess() {
  if (reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void ServerProcess::Signal(int signal_number) const {
  kill(pid_, signal_number);
}

int ServerProcess::ExitCode() {
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) std::abort();
  reaped_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string ServerProcess::Stderr() const {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = pread(stderr_.get(), part.data(), part.size(),
                                static_cast<off_t>(text.size()));
    if (count <= 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

}  // namespace tandem

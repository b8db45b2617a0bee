// ChildProcess: a child process that a test forks before it starts threads.
//
// Data flow: the body runs in the child; ExitCode returns its exit code.
// Ownership: the test. The destructor kills a child that still runs. A
// watchdog ends a child that hangs, and the child never outlives its parent.
//
//   ChildProcess engine([&] { return Serve(name); });
//   ...
//   engine.Signal(SIGTERM);
//   EXPECT_EQ(engine.ExitCode(), 0);

#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/os/end_with_parent.h"

namespace tandem {

class ChildProcess {
 public:
  static constexpr unsigned kWatchdogSecs = 240;

  // Forks, or aborts the test. `body` returns the exit code.
  template <typename Body>
  explicit ChildProcess(Body body) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
      std::perror("fork");
      std::exit(1);
    }
    if (pid_ != 0) return;
    EndWithParent(SIGKILL, parent);
    alarm(kWatchdogSecs);
    const int code = body();
    std::fflush(nullptr);
    _exit(code);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (reaped_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

  void Signal(int number) const { kill(pid_, number); }

  // Returns true once all its threads are stopped, false if it has exited.
  bool Stop() const {
    Signal(SIGSTOP);
    siginfo_t info = {};
    // WNOWAIT leaves an exit status in place for ExitCode.
    if (waitid(P_PID, static_cast<id_t>(pid_), &info,
               WSTOPPED | WEXITED | WNOWAIT) != 0) {
      return false;
    }
    return info.si_code == CLD_STOPPED;
  }

  void Continue() const { Signal(SIGCONT); }

  bool HasEnded() const {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }

  // Returns once it is dead. It stays a zombie until ExitCode.
  void AwaitDeath() const {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  // Waits until it has ended. Returns the exit code; -1 if a signal ended it.
  int ExitCode() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

}  // namespace tandem
